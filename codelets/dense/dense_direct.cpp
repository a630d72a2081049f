// A dense layer on few samples: sums of all samples × some vectors of outputs stay in registers
// over all inputs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codelets/dense/dense_direct.cpp"
#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include "codelets/dense/dense.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/simd-inl.hpp"
#include "codelets/simd.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace arenite::codelets::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t most_samples = 6;  ///< of a tile
/// Of a tile on so many samples: sums in 12 registers, or in 24, of rows of at least 256 bytes
/// where that leaves some.
constexpr std::int64_t most_vectors(std::int64_t samples) noexcept {
  return has_32_registers ? 4 : std::min<std::int64_t>(12 / samples, 8);
}
constexpr std::int64_t all_vectors = most_vectors(1);
/// Rows of weights asked for ahead: another core may have written them.
constexpr std::int64_t ahead = 12;

struct State : DenseForward {
  std::vector<Part> outputs;  ///< in vectors

  explicit State(const OpView& op)
      : DenseForward(op),
        outputs(split(divide_up(o, lanes),
                      most_vectors(std::clamp<std::int64_t>(n, 1, most_samples)))) {}
};

template <int samples, int vectors>
void forward_tile(const State& state, const float* x, const float* weight, const float* bias,
                  float* y, Mask last) {
  const std::int64_t inputs = state.i, outputs = state.o;
  // Few sums would wait for each other: then there are two of each, of every second input.
  constexpr int chains = samples * vectors < 8 ? 2 : 1;
  Vector sums[chains][samples][vectors];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    const Vector first = bias ? load<vectors>(bias, v, last) : hn::Zero(Floats());
#pragma GCC unroll 8
    for (int s = 0; s < samples; ++s) {
      sums[0][s][v] = first;
      if constexpr (chains == 2) sums[1][s][v] = hn::Zero(Floats());
    }
  }
  const auto add = [&](int chain, std::int64_t i) HWY_ATTR __attribute__((always_inline)) {
    const float* row = weight + i * outputs;
    Vector w[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      // Few weights are there anyway, and loads are what they are short of.
      if constexpr (vectors > 1) __builtin_prefetch(row + ahead * outputs + v * lanes, 0, 3);
      w[v] = load<vectors>(row, v, last);
    }
#pragma GCC unroll 8
    for (int s = 0; s < samples; ++s) {
      const Vector factor = hn::Set(Floats(), x[s * inputs + i]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v)
        sums[chain][s][v] = hn::MulAdd(factor, w[v], sums[chain][s][v]);
    }
  };
  std::int64_t i = 0;
  for (; i + chains <= inputs; i += chains) {
    add(0, i);
    if constexpr (chains == 2) add(1, i + 1);
  }
  if (i < inputs) add(0, i);
#pragma GCC unroll 8
  for (int s = 0; s < samples; ++s) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      Vector sum = sums[0][s][v];
      if constexpr (chains == 2) sum = hn::Add(sum, sums[1][s][v]);
      // The second operand where one is NaN.
      if (state.relu) sum = hn::Max(hn::Zero(Floats()), sum);
      store<vectors>(sum, y + s * outputs, v, last);
    }
  }
}

using ForwardTile = void (*)(const State&, const float*, const float*, const float*, float*, Mask);

template <int samples, int vectors>
constexpr ForwardTile tile_of() {
  if constexpr (vectors <= most_vectors(samples)) return forward_tile<samples, vectors>;
  return nullptr;
}

template <std::size_t... at>
constexpr auto forward_tiles(std::index_sequence<at...>) {
  return std::array<ForwardTile, sizeof...(at)>{
      tile_of<at / all_vectors + 1, at % all_vectors + 1>()...};
}

void forward(const KernelCall& call, const State& state) {
  static constexpr auto tiles =
      forward_tiles(std::make_index_sequence<most_samples * all_vectors>());
  const std::int64_t n = state.n, outputs = state.o;
  if (n == 0) return;
  const float* weight = call.in<float>(1);
  const float* bias = state.biased ? call.in<float>(2) : nullptr;
  for (const Part& part : state.outputs) {
    const std::int64_t o = part.first * lanes;
    const Mask last = first_lanes(outputs - o - (part.count - 1) * lanes);
    tiles[static_cast<std::size_t>((n - 1) * all_vectors + part.count - 1)](
        state, call.in<float>(0), weight + o, bias ? bias + o : nullptr, call.out<float>(0) + o,
        last);
  }
}

/// All samples in one tile: weights are read once.
graph::Support supports(const OpView& op) {
  if (DenseForward(op).n > most_samples) return "more than 6 samples";
  return {};
}

#endif

}  // namespace

Kernel make_dense_direct() {
#if HWY_TARGET == HWY_SCALAR
  return without_vectors("direct");
#else
  return {.name = "direct", .supports = supports, .prepare = prepare<made_of<State>, forward>};
#endif
}

}  // namespace arenite::codelets::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace arenite::codelets {
ARENITE_DISPATCHED(dense_direct)
}  // namespace arenite::codelets
#endif
