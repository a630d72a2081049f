// A weight's gradient and SGD on it: sums of 4 inputs × 4 vectors of outputs (2 where registers are
// few) stay in registers over all samples and go from there into the update.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codelets/dense/dense_direct_update.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include "codelets/dense/dense.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/sgd/step-inl.hpp"
#include "codelets/simd-inl.hpp"
#include "codelets/simd.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <numeric>

HWY_BEFORE_NAMESPACE();
namespace arenite::codelets::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t most_vectors = has_32_registers ? 4 : 2;
/// Inputs of a tile; of a single vector of outputs more: sums that do not wait for each other.
constexpr int most_rows = 4, most_rows_of_one = has_32_registers ? 16 : 8;
constexpr std::int64_t most_samples = has_32_registers ? 64 : 16;
/// Inputs whose samples stay in the first-level cache while a tile's outputs do.
constexpr std::int64_t block = 64;

struct State {
  DensePairs pairs;
  sgd::Rule rule;
  std::vector<Part> tiles;  ///< of the outputs, in vectors
};

State state_of(const OpView& op) {
  State state{.pairs = DensePairs(op, DensePairs::of_update), .rule = sgd::Rule(op), .tiles = {}};
  state.tiles = split(divide_up(state.pairs.outputs, lanes), most_vectors);
  return state;
}

/// What all tiles of a call share.
struct Update {
  const State& state;
  const KernelCall& call;
  VectorStep step;
  DenseUpdated updated;

  Update(const KernelCall& c, const State& s)
      : state(s), call(c), step(state.rule, *c.in<float>(1)), updated(c, state.pairs) {}

  /// Inputs [i, i + rows), outputs from o on, of whose last vector some are there.
  template <bool tree, int rows, int vectors>
  void tile(std::int64_t i, std::int64_t o, Mask last) const {
    const DensePairs& pairs = state.pairs;
    const std::int64_t at = (i - pairs.begin) * pairs.outputs + o;
    float* weight = updated.weight + at;
    float* velocity = updated.velocity ? updated.velocity + at : nullptr;
    // The rows below are next. Another core has read them: asking for them at the store only would
    // wait for it.
#pragma GCC unroll 16
    for (int r = rows; r < 2 * rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        __builtin_prefetch(weight + r * pairs.outputs + v * lanes, 1, 3);
        if (velocity) __builtin_prefetch(velocity + r * pairs.outputs + v * lanes, 1, 3);
      }
    }
    Vector sums[rows][vectors];
    if constexpr (tree) {
      add_tree(0, pairs.samples.size(), i, o, last, sums);
    } else {
      add(0, pairs.samples.size(), i, o, last, sums);
    }
    step(sums, weight, velocity, pairs.outputs, last);
  }

  /// Sums over the samples of pairs [from, to).
  template <int rows, int vectors>
  [[gnu::always_inline]] void add(std::size_t from, std::size_t to, std::int64_t i, std::int64_t o,
                                  Mask last, Vector (&sums)[rows][vectors]) const {
    const DensePairs& pairs = state.pairs;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(Floats());
    }
    for (std::size_t p = from; p < to; ++p) {
      const float *x = pairs.x(call, p) + i, *gradient = pairs.gradient(call, p) + o;
      for (std::int64_t s = 0; s < pairs.samples[p]; ++s) {
        Vector g[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) g[v] = load<vectors>(gradient, v, last);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
          const Vector factor = hn::Set(Floats(), x[r]);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, g[v], sums[r][v]);
        }
        x += pairs.inputs, gradient += pairs.outputs;
      }
    }
  }

  template <int rows, int vectors>
  [[gnu::noinline]] void add_tree(std::size_t from, std::size_t to, std::int64_t i, std::int64_t o,
                                  Mask last, Vector (&sums)[rows][vectors]) const {
    if (to - from == 1) return add(from, to, i, o, last, sums);
    const std::size_t middle = middle_of(from, to);
    add_tree(from, middle, i, o, last, sums);
    Vector right[rows][vectors];
    add_tree(middle, to, i, o, last, right);
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Add(sums[r][v], right[r][v]);
    }
  }

  template <int vectors>
  void rows(std::int64_t i, std::int64_t end, std::int64_t o, Mask last) const {
    if (state.pairs.tree) {
      rows<true, vectors>(i, end, o, last);
    } else {
      rows<false, vectors>(i, end, o, last);
    }
  }

  template <bool tree, int vectors>
  void rows(std::int64_t i, std::int64_t end, std::int64_t o, Mask last) const {
    constexpr int most = vectors == 1 ? most_rows_of_one : most_rows;
    for (; i + most <= end; i += most) tile<tree, most, vectors>(i, o, last);
    for (; i < end; ++i) tile<tree, 1, vectors>(i, o, last);
  }
};

void run(const KernelCall& call, const State& state) {
  const Update update(call, state);
  const DensePairs& pairs = state.pairs;
  for (std::int64_t i = pairs.begin; i < pairs.end; i += block) {
    const std::int64_t end = std::min(i + block, pairs.end);
    for (const Part& part : state.tiles) {
      const std::int64_t o = part.first * lanes;
      const Mask last = first_lanes(pairs.outputs - o - (part.count - 1) * lanes);
      switch (part.count) {
        case 1:
          update.rows<1>(i, end, o, last);
          break;
        case 2:
          update.rows<2>(i, end, o, last);
          break;
        default:
          if constexpr (most_vectors > 2)
            part.count == 3 ? update.rows<3>(i, end, o, last) : update.rows<4>(i, end, o, last);
      }
    }
  }
}

/// LIBXSMM is as fast on many samples, or faster, and on rows of 16 (bench/kernel_bench.cpp).
graph::Support supports(const OpView& op) {
  const DensePairs pairs(op, DensePairs::of_update);
  if (pairs.outputs <= 16) return "at most 16 outputs";
  if (std::accumulate(pairs.samples.begin(), pairs.samples.end(), std::int64_t{0}) > most_samples)
    return has_32_registers ? graph::Support("more than 64 samples")
                            : graph::Support("more than 16 samples");
  return {};
}

#endif

}  // namespace

Kernel make_dense_direct_update() {
#if HWY_TARGET == HWY_SCALAR
  return without_vectors("direct");
#else
  return {.name = "direct", .supports = supports, .prepare = prepare<state_of, run>};
#endif
}

}  // namespace arenite::codelets::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::codelets {
ARENITE_DISPATCHED(dense_direct_update)
}  // namespace arenite::codelets
#endif
