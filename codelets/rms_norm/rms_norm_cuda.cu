#include "codelets/cuda/rows.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

struct State {
  LastAxis axis;
  double eps = 0;
};

State state_of(const OpView& op) { return {LastAxis(op.operand(0).shape), op.real("eps")}; }

/// Of a row of x: its root mean square, of the sum of its squares.
struct Squares {
  const float* x;
  double length, eps;

  Squares(const State& s, const float* from)
      : x(from), length(static_cast<double>(s.axis.length)), eps(s.eps) {}

  ARENITE_GPU double square(std::int64_t i) const {
    return static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  ARENITE_GPU double root(double squares) const { return std::sqrt(squares / length + eps); }
};

/// y = x · weight / r
struct Norm : Squares {
  static constexpr int sums = 1;
  const float* weight;
  float* y;

  ARENITE_GPU void add(std::int64_t i, std::int64_t, double* sum) const { sum[0] += square(i); }
  ARENITE_GPU float scale(std::int64_t, const double* sum) const {
    return static_cast<float>(1 / root(sum[0]));
  }
  ARENITE_GPU void finish(std::int64_t i, std::int64_t c, float inverse) const {
    y[i] = x[i] * inverse * weight[c];
  }
};

void run_norm(const KernelCall& call) {
  const State& s = *static_cast<const State*>(call.state);
  cuda::sum_rows(call, s.axis, Norm{{s, call.in<float>(0)}, call.in<float>(1), call.out<float>(0)});
}

/// dx = g·w/r − x · Σ g·w·x / (C·r³)
struct GradInput : Squares {
  static constexpr int sums = 2;
  const float *gradient, *weight;
  float* dx;

  struct Scale {
    double root, of_x;
  };

  ARENITE_GPU double weighted(std::int64_t i, std::int64_t c) const {
    return static_cast<double>(gradient[i]) * static_cast<double>(weight[c]);
  }
  ARENITE_GPU void add(std::int64_t i, std::int64_t c, double* sum) const {
    sum[0] += square(i);
    sum[1] += weighted(i, c) * static_cast<double>(x[i]);
  }
  ARENITE_GPU Scale scale(std::int64_t, const double* sum) const {
    const double r = root(sum[0]);
    return {r, sum[1] / (length * r * r * r)};
  }
  ARENITE_GPU void finish(std::int64_t i, std::int64_t c, const Scale& by) const {
    dx[i] = static_cast<float>(weighted(i, c) / by.root - static_cast<double>(x[i]) * by.of_x);
  }
};

void run_grad_input(const KernelCall& call) {
  const State& s = *static_cast<const State*>(call.state);
  cuda::sum_rows(
      call, s.axis,
      GradInput{{s, call.in<float>(1)}, call.in<float>(0), call.in<float>(2), call.out<float>(0)});
}

/// inverse = 1/r, of each row.
struct Inverse : Squares {
  static constexpr int sums = 1;
  double* inverse;

  struct Scale {
    double* to;
    double inverse;
  };

  ARENITE_GPU void add(std::int64_t i, std::int64_t, double* sum) const { sum[0] += square(i); }
  ARENITE_GPU Scale scale(std::int64_t r, const double* sum) const {
    return {inverse + r, 1 / root(sum[0])};
  }
  ARENITE_GPU void finish(std::int64_t, std::int64_t c, const Scale& row) const {
    if (c == 0) *row.to = row.inverse;
  }
};

/// In the workspace lie the rows' 1/r, doubles, and behind them the chunks of the sums.
cuda::Chunks chunks_of(const LastAxis& axis) { return {axis.length, axis.rows}; }

std::int64_t workspace(const OpView& op) {
  const LastAxis axis(op.operand(0).shape);
  return axis.rows * static_cast<std::int64_t>(sizeof(double)) + chunks_of(axis).workspace();
}

void run_grad_weight(const KernelCall& call) {
  const State& s = *static_cast<const State*>(call.state);
  const std::int64_t length = s.axis.length;
  const float *gradient = call.in<float>(0), *x = call.in<float>(1);
  float* dweight = call.out<float>(0);
  auto* inverse = static_cast<double*>(call.workspace);
  cuda::sum_rows(call, s.axis, Inverse{{s, x}, inverse});
  KernelCall behind = call;
  behind.workspace = inverse + s.axis.rows;
  cuda::sum_chunks(
      behind, chunks_of(s.axis),
      [=] ARENITE_THREAD(std::int64_t i, std::int64_t r) {
        return static_cast<double>(gradient[r * length + i]) *
               static_cast<double>(x[r * length + i]) * inverse[r];
      },
      [=] ARENITE_THREAD(std::int64_t i, double total) { dweight[i] = static_cast<float>(total); });
}

}  // namespace

void ARENITE_CUDA_KERNELS(rms_norm)(runtime::KernelTable& kernels) {
  kernels.add("rms_norm", cuda::own(prepare<state_of, run_norm>));
  kernels.add("rms_norm_grad_input", cuda::own(prepare<state_of, run_grad_input>));
  kernels.add("rms_norm_grad_weight", cuda::own(prepare<state_of, run_grad_weight>, workspace));
}

}  // namespace arenite::codelets
