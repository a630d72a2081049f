#include "codelets/cuda/rows.hpp"
#include "codelets/cuda/status.hpp"
#include "codelets/sliced_softmax/sliced_softmax.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

/// Where the length of the prefix stands: in the attribute, or in an operand.
struct Prefix {
  std::int64_t attribute = 0, length = 0;
  const std::int64_t* operand = nullptr;

  ARENITE_GPU bool valid() const {
    return operand == nullptr || (*operand >= 0 && *operand <= length);
  }
  ARENITE_GPU std::int64_t get() const {
    return operand == nullptr ? attribute : valid() ? *operand : 0;
  }
};

Prefix prefix_of(const KernelCall& call, const PrefixedRows& s, std::size_t value) {
  const Prefix prefix{s.prefix, s.axis.length,
                      s.prefix < 0 ? call.in<std::int64_t>(value) : nullptr};
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  if (prefix.operand != nullptr) {
    cuda::for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
      if (!prefix.valid()) cuda::report(status, op, static_cast<std::uint32_t>(PrefixFault::range));
    });
  }
  return prefix;
}

/// The larger of two, or the one that is no number.
ARENITE_GPU float larger(float a, float b) { return b > a || b != b ? b : a; }

/// y = exp(x − max x) / Σ of these in the prefix, and x behind it.
struct Softmax : cuda::RowsOfWarps {
  struct Shared {
    float largest[rows][lanes];
    double sum[rows][lanes];
  };

  Prefix prefix;
  const float* x;
  float* y;  ///< which may be x

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    block.each([&](int t) {
      at_row(block.index, t, [&](std::int64_t r, std::int64_t first) {
        float mine = -INFINITY;
        each_in_prefix(r, first, [&](std::int64_t i) { mine = larger(mine, x[i]); });
        shared.largest[t / lanes][t % lanes] = mine;
      });
    });
    block.each([&](int t) {
      at_row(block.index, t, [&](std::int64_t r, std::int64_t first) {
        float largest = -INFINITY;
        ARENITE_UNROLL_ALL
        for (int lane = 0; lane < lanes; ++lane)
          largest = larger(largest, shared.largest[t / lanes][lane]);
        double mine = 0;
        each_in_prefix(r, first, [&](std::int64_t i) {
          y[i] = std::exp(x[i] - largest);
          mine += static_cast<double>(y[i]);
        });
        shared.sum[t / lanes][t % lanes] = mine;
      });
    });
    block.each([&](int t) {
      at_row(block.index, t, [&](std::int64_t r, std::int64_t first) {
        const std::int64_t length = prefix.get();
        const auto scale = static_cast<float>(1 / cuda::sum_of<lanes>(shared.sum[t / lanes], 1));
        each_element(r, first, [&](std::int64_t i, std::int64_t c) {
          y[i] = c < length ? y[i] * scale : x[i];
        });
      });
    });
  }

 private:
  template <class F>
  ARENITE_GPU void each_in_prefix(std::int64_t r, std::int64_t first, F f) const {
    for (std::int64_t c = first, end = prefix.get(); c < end; c += lanes) f(r * axis.length + c);
  }
};

void run_softmax(const KernelCall& call) {
  const PrefixedRows& s = *static_cast<const PrefixedRows*>(call.state);
  const Softmax all{{s.axis}, prefix_of(call, s, 1), call.in<float>(0), call.out<float>(0)};
  cuda::for_each_block(call, all.blocks(), all);
}

/// dx = y · (g − Σ g·y) in the prefix, and g behind it.
struct Gradient {
  static constexpr int sums = 1;

  Prefix prefix;
  const float *gradient, *y;
  float* dx;  ///< which may be either

  struct Scale {
    float mean;
    std::int64_t prefix;
  };

  ARENITE_GPU void add(std::int64_t i, std::int64_t c, double* sum) const {
    if (c < prefix.get()) sum[0] += static_cast<double>(gradient[i]) * static_cast<double>(y[i]);
  }
  ARENITE_GPU Scale scale(std::int64_t, const double* sum) const {
    return {static_cast<float>(sum[0]), prefix.get()};
  }
  ARENITE_GPU void finish(std::int64_t i, std::int64_t c, const Scale& by) const {
    dx[i] = c < by.prefix ? y[i] * (gradient[i] - by.mean) : gradient[i];
  }
};

void run_grad(const KernelCall& call) {
  const PrefixedRows& s = *static_cast<const PrefixedRows*>(call.state);
  cuda::sum_rows(
      call, s.axis,
      Gradient{prefix_of(call, s, 2), call.in<float>(0), call.in<float>(1), call.out<float>(0)});
}

}  // namespace

void ARENITE_CUDA_KERNELS(sliced_softmax)(runtime::KernelTable& kernels) {
  kernels.add("sliced_softmax", cuda::own(prepare<PrefixedRows::sliced, run_softmax>));
  kernels.add("sliced_softmax_grad", cuda::own(prepare<PrefixedRows::sliced, run_grad>));
}

}  // namespace arenite::codelets
