#include "codelets/strides.hpp"
#include "codelets/words.hpp"

namespace arenite::codelets {
namespace {

/// Doubles that sums are taken in at a time: they stay in the first-level cache.
constexpr std::int64_t most_totals = 512;
/// Short rows side by side make a strip of about this many elements, to fill the vectors.
constexpr std::int64_t strip_target = 64;

/// x is `rows` of `width` elements, over and over: a row of sums comes from all those that `terms`
/// leads to, and `sums` leads from one such row to the next.
struct State {
  Nest<2> sums;   ///< in x and in y
  Nest<1> terms;  ///< in x
  std::int64_t first = 0, rows = 1, row_step = 0, width = 1;

  /// Rows that lie one behind the other are strips of several of them.
  std::int64_t strip() const noexcept {
    const bool gap = rows > 1 && row_step != width;
    if (gap || width == 0 || width >= strip_target) return std::min(width, most_totals);
    return width * std::clamp<std::int64_t>(rows, 1, strip_target / width);
  }
};

State state_of(const OpView& op) {
  const graph::Value &x = op.operand(0), &y = op.result(0);
  const Strides from(x), to(y);
  State state;
  state.first = from.first;
  for (int i = 0; i < x.shape.rank(); ++i) {
    const std::int64_t step = from.axis[static_cast<std::size_t>(i)];
    if (y.shape[i] == x.shape[i]) {
      state.sums.add({x.shape[i], {step, to.axis[static_cast<std::size_t>(i)]}});
    } else {
      state.terms.add({x.shape[i], {step}});
    }
  }
  // The innermost axis that stays is a row, if it is within all that are summed over.
  const auto adjacent = [](const auto& axis) { return axis.step[0] == 1; };
  const auto row = state.sums.take_innermost(adjacent);
  const auto rows = state.terms.take_innermost([](const auto&) { return true; });
  state.width = row.size, state.rows = rows.size, state.row_step = rows.step[0];
  return state;
}

/// total[i] += elements i, i + strip, i + 2·strip, …
template <class T>
void add_strips(const T* x, std::int64_t count, std::int64_t strip, double* total) noexcept {
  for (; count > 0; count -= strip, x += strip) {
    const std::int64_t n = std::min(strip, count);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(x[i]);
  }
}

template <class T>
void run(const KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t strip = state.strip(), width = state.width;
  double total[most_totals];
  state.sums.for_each({state.first, 0}, [&](const auto& at) {
    const T* x = call.in<T>(0) + at[0];
    T* y = call.out<T>(0) + at[1];
    // Several parts of a wide row, or the only one.
    for (std::int64_t from = 0; from < width; from += strip) {
      const std::int64_t part = std::min(strip, width - from);
      std::fill_n(total, strip, 0.0);
      state.terms.for_each({from}, [&](const auto& term) {
        if (strip > width) return add_strips(x + term[0], state.rows * width, strip, total);
        for (std::int64_t r = 0; r < state.rows; ++r)
          add_strips(x + term[0] + r * state.row_step, part, part, total);
      });
      for (std::int64_t i = 0; i < part; ++i) {
        double sum = 0;
        for (std::int64_t j = i; j < strip; j += width) sum += total[j];
        y[from + i] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace

std::vector<Kernel> sum_to_kernels() {
  return {{.name = "plain",
           .prepare = prepare_real<state_of, run<float>, run<double>>,
           .wanted_halo = skipped_halo<0>}};
}

}  // namespace arenite::codelets
