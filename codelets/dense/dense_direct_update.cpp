// A weight's gradient and SGD on it, for AVX-512: sums of 4 inputs × 64 outputs stay in registers
// over all samples and go from there into the update.
#include "codelets/avx512.hpp"
#include "codelets/dense/dense.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/sgd/step.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <numeric>

namespace arenite::codelets {

#ifdef ARENITE_AVX512

namespace {

constexpr std::int64_t most_vectors = 4;
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
  sgd::VectorStep step;
  DenseUpdated updated;

  Update(const KernelCall& c, const State& s)
      : state(s), call(c), step(state.rule, *c.in<float>(1)), updated(c, state.pairs) {}

  /// Inputs [i, i + rows), outputs from o on, of whose last vector some are there.
  template <bool tree, int rows, int vectors>
  void tile(std::int64_t i, std::int64_t o, __mmask16 last) const noexcept {
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
    __m512 sums[rows][vectors];
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
                                  __mmask16 last, __m512 (&sums)[rows][vectors]) const noexcept {
    const DensePairs& pairs = state.pairs;
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_setzero_ps();
    }
    for (std::size_t p = from; p < to; ++p) {
      const float *x = pairs.x(call, p) + i, *gradient = pairs.gradient(call, p) + o;
      for (std::int64_t s = 0; s < pairs.samples[p]; ++s) {
        __m512 g[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          g[v] = _mm512_maskz_loadu_ps(v + 1 == vectors ? last : 0xffff, gradient + v * lanes);
        }
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
          const __m512 factor = _mm512_set1_ps(x[r]);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_fmadd_ps(factor, g[v], sums[r][v]);
        }
        x += pairs.inputs, gradient += pairs.outputs;
      }
    }
  }

  template <int rows, int vectors>
  [[gnu::noinline]] void add_tree(std::size_t from, std::size_t to, std::int64_t i, std::int64_t o,
                                  __mmask16 last, __m512 (&sums)[rows][vectors]) const noexcept {
    if (to - from == 1) return add(from, to, i, o, last, sums);
    const std::size_t middle = middle_of(from, to);
    add_tree(from, middle, i, o, last, sums);
    __m512 right[rows][vectors];
    add_tree(middle, to, i, o, last, right);
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_add_ps(sums[r][v], right[r][v]);
    }
  }

  template <int vectors>
  void rows(std::int64_t i, std::int64_t end, std::int64_t o, __mmask16 last) const noexcept {
    if (state.pairs.tree) {
      rows<true, vectors>(i, end, o, last);
    } else {
      rows<false, vectors>(i, end, o, last);
    }
  }

  template <bool tree, int vectors>
  void rows(std::int64_t i, std::int64_t end, std::int64_t o, __mmask16 last) const noexcept {
    // A single vector of outputs needs more inputs: sums that do not wait for each other.
    constexpr int most = vectors == 1 ? 16 : 4;
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
      const __mmask16 last = first_lanes(pairs.outputs - o - (part.count - 1) * lanes);
      switch (part.count) {
        case 1:
          update.rows<1>(i, end, o, last);
          break;
        case 2:
          update.rows<2>(i, end, o, last);
          break;
        case 3:
          update.rows<3>(i, end, o, last);
          break;
        default:
          update.rows<4>(i, end, o, last);
      }
    }
  }
}

/// LIBXSMM is as fast on many samples, and on rows of less than a vector.
graph::Support supports(const OpView& op) {
  const DensePairs pairs(op, DensePairs::of_update);
  if (pairs.outputs <= lanes) return "at most 16 outputs";
  if (std::accumulate(pairs.samples.begin(), pairs.samples.end(), std::int64_t{0}) > 64)
    return "more than 64 samples";
  return {};
}

}  // namespace

Kernel dense_direct_update() {
  return {.name = "direct", .supports = supports, .prepare = prepare<state_of, run>};
}

#else

Kernel dense_direct_update() { return without_avx512("direct"); }

#endif

}  // namespace arenite::codelets
