#include "codelets/cuda/status.hpp"
#include "codelets/cuda/sums.hpp"
#include "codelets/sliced_softmax/sliced_softmax.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

/// Where the length of the prefix stands: in the attribute, or in an operand.
struct Prefix {
  std::int64_t attribute = 0, length = 0;
  const std::int64_t* operand = nullptr;

  ARENITE_GPU std::uint32_t fault() const {
    if (operand == nullptr || (*operand >= 0 && *operand <= length)) return 0;
    return static_cast<std::uint32_t>(PrefixFault::range);
  }
  ARENITE_GPU std::int64_t get() const {
    return operand == nullptr ? attribute : fault() == 0 ? *operand : 0;
  }
};

Prefix prefix_of(const KernelCall& call, const PrefixedRows& s, std::size_t value) {
  const Prefix prefix{s.prefix, s.axis.length,
                      s.prefix < 0 ? call.in<std::int64_t>(value) : nullptr};
  if (prefix.operand != nullptr) cuda::report_fault(call, prefix);
  return prefix;
}

/// The larger of two, or the one that is no number.
ARENITE_GPU float larger(float a, float b) { return b > a || b != b ? b : a; }

/// Four rows a block, each shared by the 32 threads of a warp, which read and write side by side.
struct RowsOfWarps {
  static constexpr int lanes = 32, rows = 4, threads = lanes * rows;
  using OfLanes = double[rows][lanes];

  LastAxis axis;
  Prefix prefix;

  std::int64_t blocks() const { return divide_up(axis.rows, rows); }

  /// f(thread, i) where the thread has a row, whose first element is i of all.
  template <class F>
  ARENITE_GPU void each_row(cuda::Block<threads> block, F f) const {
    block.each([&](int t) {
      const std::int64_t r = std::int64_t{block.index} * rows + t / lanes;
      if (r < axis.rows) f(t, r * axis.length);
    });
  }
  /// f(c) for the thread's columns below `end`, each `lanes`-th.
  template <class F>
  static ARENITE_GPU void each_column(int thread, std::int64_t end, F f) {
    for (std::int64_t c = thread % lanes; c < end; c += lanes) f(c);
  }
  /// What the lanes of the thread's row have made.
  static ARENITE_GPU double sum_of_row(const OfLanes& sums, int thread) {
    return cuda::sum_of<lanes>(sums[thread / lanes], 1);
  }
};

/// y = exp(x − max x) / Σ of these in the prefix, and x behind it.
struct Softmax : RowsOfWarps {
  struct Shared {
    float largest[rows][lanes];
    OfLanes sum;
  };

  const float* x;
  float* y;  ///< which may be x

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    each_row(block, [&](int t, std::int64_t row) {
      float mine = -INFINITY;
      each_column(t, prefix.get(), [&](std::int64_t c) { mine = larger(mine, x[row + c]); });
      shared.largest[t / lanes][t % lanes] = mine;
    });
    each_row(block, [&](int t, std::int64_t row) {
      float largest = -INFINITY;
      ARENITE_UNROLL_ALL
      for (int lane = 0; lane < lanes; ++lane)
        largest = larger(largest, shared.largest[t / lanes][lane]);
      double mine = 0;
      each_column(t, prefix.get(), [&](std::int64_t c) {
        y[row + c] = std::exp(x[row + c] - largest);
        mine += static_cast<double>(y[row + c]);
      });
      shared.sum[t / lanes][t % lanes] = mine;
    });
    each_row(block, [&](int t, std::int64_t row) {
      const std::int64_t length = prefix.get();
      const auto scale = static_cast<float>(1 / sum_of_row(shared.sum, t));
      each_column(t, axis.length, [&](std::int64_t c) {
        y[row + c] = c < length ? y[row + c] * scale : x[row + c];
      });
    });
  }
};

void run_softmax(const KernelCall& call, const PrefixedRows& s) {
  const Softmax all{{s.axis, prefix_of(call, s, 1)}, call.in<float>(0), call.out<float>(0)};
  cuda::for_each_block(call, all.blocks(), all);
}

/// dx = y · (g − Σ g·y) in the prefix, and g behind it.
struct Gradient : RowsOfWarps {
  struct Shared {
    OfLanes sum;
  };

  const float *gradient, *y;
  float* dx;  ///< which may be either

  ARENITE_GPU void operator()(cuda::Block<threads> block, Shared& shared) const {
    each_row(block, [&](int t, std::int64_t row) {
      double mine = 0;
      each_column(t, prefix.get(), [&](std::int64_t c) {
        mine += static_cast<double>(gradient[row + c]) * static_cast<double>(y[row + c]);
      });
      shared.sum[t / lanes][t % lanes] = mine;
    });
    each_row(block, [&](int t, std::int64_t row) {
      const std::int64_t length = prefix.get();
      const auto mean = static_cast<float>(sum_of_row(shared.sum, t));
      each_column(t, axis.length, [&](std::int64_t c) {
        const float g = gradient[row + c];
        dx[row + c] = c < length ? y[row + c] * (g - mean) : g;
      });
    });
  }
};

void run_grad(const KernelCall& call, const PrefixedRows& s) {
  const Gradient all{
      {s.axis, prefix_of(call, s, 2)}, call.in<float>(0), call.in<float>(1), call.out<float>(0)};
  cuda::for_each_block(call, all.blocks(), all);
}

}  // namespace

void ARENITE_CUDA_KERNELS(sliced_softmax)(runtime::KernelTable& kernels) {
  kernels.add("sliced_softmax", cuda::own(prepare<PrefixedRows::sliced, run_softmax>));
  kernels.add("sliced_softmax_grad", cuda::own(prepare<PrefixedRows::sliced, run_grad>));
}

}  // namespace arenite::codelets
