// The gradient of a dense layer's input on few samples, for AVX-512. Weights lie with the outputs
// side by side, which is what the sums go over: 16 sums at a time, of 4 samples × 4 inputs, 2 × 8
// or 1 × 16, are added up across lanes at their end.
#include "codelets/avx512.hpp"
#include "codelets/dense/dense.hpp"
#include "codelets/dense/shapes.hpp"
#include "codelets/words.hpp"

#include <algorithm>

namespace arenite::codelets {

#ifdef ARENITE_AVX512

namespace {

/// Lane l of the result is the sum of all lanes of vector l.
inline __m512 sums_of(const __m512 (&v)[lanes]) noexcept {
  __m512 quarter[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512* a = v + 4 * i;
    const __m512d low =
                      _mm512_castps_pd(_mm512_add_ps(_mm512_maskz_unpacklo_ps(0xffff, a[0], a[1]),
                                                     _mm512_maskz_unpackhi_ps(0xffff, a[0], a[1]))),
                  high =
                      _mm512_castps_pd(_mm512_add_ps(_mm512_maskz_unpacklo_ps(0xffff, a[2], a[3]),
                                                     _mm512_maskz_unpackhi_ps(0xffff, a[2], a[3])));
    quarter[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, low, high)),
                               _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, low, high)));
  }
  const auto halves = [](__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_maskz_shuffle_f32x4(0xffff, a, b, 0x88),
                         _mm512_maskz_shuffle_f32x4(0xffff, a, b, 0xdd));
  };
  return halves(halves(quarter[0], quarter[1]), halves(quarter[2], quarter[3]));
}

/// What all tiles of a call share.
struct Call {
  const DenseGradInput& layer;
  const float *gradient, *weight, *output;
  float* dx;

  Call(const KernelCall& call, const DenseGradInput& sizes)
      : layer(sizes),
        gradient(call.in<float>(0)),
        weight(call.in<float>(1)),
        output(layer.masked ? call.in<float>(2) : nullptr),
        dx(call.out<float>(0)) {}

  /// Some inputs' gradients of one sample, by what the ReLU let through; it passes on NaN.
  void store(std::int64_t at, __m512 values, __mmask16 some) const noexcept {
    if (output) values = relu_grad(_mm512_maskz_loadu_ps(some, output + at), values);
    _mm512_mask_storeu_ps(dx + at, some, values);
  }

  /// Samples from n on times inputs from i on, of which there are `count`.
  template <int samples>
  void tile(std::int64_t n, std::int64_t i, std::int64_t count) const noexcept {
    constexpr int inputs = lanes / samples;
    const std::int64_t outputs = layer.o;
    // Inputs that are not there are the last one again.
    const float* rows[inputs];
#pragma GCC unroll 16
    for (int k = 0; k < inputs; ++k)
      rows[k] = weight + (i + std::min<std::int64_t>(k, count - 1)) * outputs;
    __m512 sums[lanes];
#pragma GCC unroll 16
    for (int t = 0; t < lanes; ++t) sums[t] = _mm512_setzero_ps();
    const auto add = [&](std::int64_t o, __mmask16 some) __attribute__((always_inline)) {
      __m512 g[samples];
#pragma GCC unroll 4
      for (int s = 0; s < samples; ++s)
        g[s] = _mm512_maskz_loadu_ps(some, gradient + (n + s) * outputs + o);
#pragma GCC unroll 16
      for (int k = 0; k < inputs; ++k) {
        const __m512 w = _mm512_maskz_loadu_ps(some, rows[k] + o);
        // The next inputs' weights: another core may have written them.
        __builtin_prefetch(rows[k] + lanes * outputs + o, 0, 3);
#pragma GCC unroll 4
        for (int s = 0; s < samples; ++s)
          sums[s * inputs + k] = _mm512_fmadd_ps(g[s], w, sums[s * inputs + k]);
      }
    };
    std::int64_t o = 0;
    for (; o + lanes <= outputs; o += lanes) add(o, 0xffff);
    if (o < outputs) add(o, first_lanes(outputs - o));
    const __m512 all = sums_of(sums);
    const __mmask16 some = first_lanes(std::min<std::int64_t>(count, inputs));
    const auto at = [&](int s) { return (n + s) * layer.i + i; };
    if constexpr (samples == 1) {
      store(at(0), all, some);
    } else if constexpr (samples == 2) {
      store(at(0), all, some);
      store(at(1), _mm512_maskz_shuffle_f32x4(0xffff, all, all, 0xee), some);
    } else {
      store(at(0), all, some);
      store(at(1), _mm512_maskz_shuffle_f32x4(0xffff, all, all, 0x55), some);
      store(at(2), _mm512_maskz_shuffle_f32x4(0xffff, all, all, 0xaa), some);
      store(at(3), _mm512_maskz_shuffle_f32x4(0xffff, all, all, 0xff), some);
    }
  }

  template <int samples>
  void tiles(std::int64_t n, std::int64_t i, std::int64_t end) const noexcept {
    constexpr int inputs = lanes / samples;
    for (; i < end; i += inputs) tile<samples>(n, i, end - i);
  }
};

void run(const KernelCall& arguments, const DenseGradInput& layer) {
  const Call call(arguments, layer);
  const std::int64_t samples = layer.n, inputs = layer.i;
  for (std::int64_t i = 0; i < inputs; i += lanes) {
    const std::int64_t end = std::min(i + lanes, inputs);
    std::int64_t n = 0;
    for (; n + 4 <= samples; n += 4) call.tiles<4>(n, i, end);
    for (; n + 2 <= samples; n += 2) call.tiles<2>(n, i, end);
    if (n < samples) call.tiles<1>(n, i, end);
  }
}

/// Sums across lanes pay where many outputs go before them, and the less the more samples share
/// LIBXSMM's transposed weights (bench/NOTES.md).
graph::Support supports(const OpView& op) {
  const DenseGradInput layer(op);
  if (layer.n > 16) return "more than 16 samples";
  if (layer.o < 96) return "fewer than 96 outputs to sum over";
  if (layer.n > 12 && layer.o < 192)
    return "fewer than 192 outputs to sum over, for over 12 samples";
  return {};
}

}  // namespace

Kernel dense_direct_grad_input() {
  return {.name = "direct", .supports = supports, .prepare = prepare<made_of<DenseGradInput>, run>};
}

#else

Kernel dense_direct_grad_input() { return without_avx512("direct"); }

#endif

}  // namespace arenite::codelets
