#include "codelets/cuda/sums.hpp"
#include "codelets/last_axis.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

struct State {
  LastAxis axis;
  double eps = 0;
};

State state_of(const graph::OpView& op) { return {LastAxis(op.operand(0).shape), op.real("eps")}; }

ARENITE_GPU double root_mean_square(const float* x, std::int64_t length, double eps) {
  double squares = 0;
  for (std::int64_t i = 0; i < length; ++i)
    squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(squares / static_cast<double>(length) + eps);
}

void run_norm(const runtime::KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const std::int64_t length = s.axis.length;
  const float *from = call.in<float>(0), *weight = call.in<float>(1);
  float* to = call.out<float>(0);
  cuda::for_each(call, s.axis.rows, [=] ARENITE_THREAD(std::int64_t r) {
    const float* x = from + r * length;
    float* y = to + r * length;  // which may be x
    const auto inverse = static_cast<float>(1 / root_mean_square(x, length, s.eps));
    for (std::int64_t i = 0; i < length; ++i) y[i] = x[i] * inverse * weight[i];
  });
}

/// dx = g·w/r − x · Σ g·w·x / (C·r³)
void run_grad_input(const runtime::KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const std::int64_t length = s.axis.length;
  const float *gradients = call.in<float>(0), *from = call.in<float>(1),
              *weight = call.in<float>(2);
  float* to = call.out<float>(0);
  cuda::for_each(call, s.axis.rows, [=] ARENITE_THREAD(std::int64_t r) {
    const float *gradient = gradients + r * length, *x = from + r * length;
    float* dx = to + r * length;  // which may be either
    const double root = root_mean_square(x, length, s.eps);
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i)
      sum += static_cast<double>(gradient[i]) * static_cast<double>(weight[i]) *
             static_cast<double>(x[i]);
    const double scale = sum / (static_cast<double>(length) * root * root * root);
    for (std::int64_t i = 0; i < length; ++i) {
      dx[i] = static_cast<float>(static_cast<double>(gradient[i]) * static_cast<double>(weight[i]) /
                                     root -
                                 static_cast<double>(x[i]) * scale);
    }
  });
}

/// In the workspace lie the rows' 1/r, doubles, and behind them the chunks of the sums.
cuda::Chunks chunks_of(const LastAxis& axis) { return {axis.length, axis.rows}; }

std::int64_t workspace(const graph::OpView& op) {
  const LastAxis axis(op.operand(0).shape);
  return axis.rows * static_cast<std::int64_t>(sizeof(double)) + chunks_of(axis).workspace();
}

void run_grad_weight(const runtime::KernelCall& call) {
  const State s = *static_cast<const State*>(call.state);
  const std::int64_t length = s.axis.length;
  const float *gradient = call.in<float>(0), *x = call.in<float>(1);
  float* dweight = call.out<float>(0);
  auto* inverse = static_cast<double*>(call.workspace);
  cuda::for_each(call, s.axis.rows, [=] ARENITE_THREAD(std::int64_t r) {
    inverse[r] = 1 / root_mean_square(x + r * length, length, s.eps);
  });
  runtime::KernelCall behind = call;
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
