// A dense layer on few samples, for AVX-512: up to 6 samples × 64 outputs stay in registers over
// all inputs.
#include "codelets/avx512.hpp"
#include "codelets/dense/dense.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/sizes.hpp"
#include "codelets/words.hpp"

#include <array>
#include <utility>

namespace arenite::codelets {

#ifdef ARENITE_AVX512

namespace {

constexpr std::int64_t most_samples = 6;  ///< of a tile

constexpr std::int64_t most_vectors = 4;
/// Rows of weights asked for ahead: another core may have written them.
constexpr std::int64_t ahead = 12;

struct State : DenseForward {
  std::vector<Part> outputs;  ///< in vectors

  explicit State(const OpView& op)
      : DenseForward(op), outputs(split(divide_up(o, lanes), most_vectors)) {}
};

template <int samples, int vectors>
void forward_tile(const State& state, const float* x, const float* weight, const float* bias,
                  float* y, __mmask16 last) noexcept {
  const std::int64_t inputs = state.i, outputs = state.o;
  // Few sums would wait for each other: then there are two of each, of every second input.
  constexpr int chains = samples * vectors < 8 ? 2 : 1;
  const auto some = [last](int v) { return v + 1 == vectors ? last : __mmask16{0xffff}; };
  __m512 sums[chains][samples][vectors];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    const __m512 first =
        bias ? _mm512_maskz_loadu_ps(some(v), bias + v * lanes) : _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int s = 0; s < samples; ++s) {
      sums[0][s][v] = first;
      if constexpr (chains == 2) sums[1][s][v] = _mm512_setzero_ps();
    }
  }
  const auto add = [&](int chain, std::int64_t i) __attribute__((always_inline)) {
    const float* row = weight + i * outputs;
    __m512 w[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      // Few weights are there anyway, and loads are what they are short of.
      if constexpr (vectors > 1) __builtin_prefetch(row + ahead * outputs + v * lanes, 0, 3);
      w[v] = _mm512_maskz_loadu_ps(some(v), row + v * lanes);
    }
#pragma GCC unroll 8
    for (int s = 0; s < samples; ++s) {
      const __m512 factor = _mm512_set1_ps(x[s * inputs + i]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        sums[chain][s][v] = _mm512_fmadd_ps(factor, w[v], sums[chain][s][v]);
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
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      __m512 sum = sums[0][s][v];
      if constexpr (chains == 2) sum = _mm512_add_ps(sum, sums[1][s][v]);
      // The second operand where one is NaN.
      if (state.relu) sum = _mm512_maskz_max_ps(0xffff, _mm512_setzero_ps(), sum);
      _mm512_mask_storeu_ps(y + s * outputs + v * lanes, some(v), sum);
    }
  }
}

using ForwardTile = void (*)(const State&, const float*, const float*, const float*, float*,
                             __mmask16) noexcept;

template <std::size_t... at>
constexpr auto forward_tiles(std::index_sequence<at...>) {
  return std::array<ForwardTile, sizeof...(at)>{
      forward_tile<at / most_vectors + 1, at % most_vectors + 1>...};
}

void forward(const KernelCall& call, const State& state) {
  static constexpr auto tiles =
      forward_tiles(std::make_index_sequence<most_samples * most_vectors>());
  const std::int64_t n = state.n, outputs = state.o;
  if (n == 0) return;
  const float* weight = call.in<float>(1);
  const float* bias = state.biased ? call.in<float>(2) : nullptr;
  for (const Part& part : state.outputs) {
    const std::int64_t o = part.first * lanes;
    const __mmask16 last = first_lanes(outputs - o - (part.count - 1) * lanes);
    tiles[static_cast<std::size_t>((n - 1) * most_vectors + part.count - 1)](
        state, call.in<float>(0), weight + o, bias ? bias + o : nullptr, call.out<float>(0) + o,
        last);
  }
}

/// All samples in one tile: weights are read once.
graph::Support supports(const OpView& op) {
  if (DenseForward(op).n > most_samples) return "more than 6 samples";
  return {};
}

}  // namespace

Kernel dense_direct() {
  return {.name = "direct", .supports = supports, .prepare = prepare<made_of<State>, forward>};
}

#else

Kernel dense_direct() { return without_avx512("direct"); }

#endif

}  // namespace arenite::codelets
