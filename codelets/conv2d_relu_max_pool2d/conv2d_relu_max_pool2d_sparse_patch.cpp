// The weight gradient of 3x3 kernels on one channel, whose taps would leave most lanes empty.
//
// Lanes are output channels. The 4x4 pixels below a window are one register, and each lane picks
// the tap of its winner out of it; lanes that are dead add 0.
#include "codelets/avx512.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"
#include "codelets/prepare.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

using graph::OpView;
using runtime::Kernel;
using runtime::KernelCall;

#ifdef ARENITE_AVX512
namespace {

struct Patches {
  Geometry g;
  PaddedSamples x;
};

/// Adds one sample's share to the gradients of `blocks` times 16 output channels, the last block's
/// perhaps not all there.
template <int blocks>
void add_patches(const Patches& s, const float* x, const float* gradients,
                 const std::uint8_t* codes, std::int64_t outputs, float* dw, float* db) {
  constexpr int taps = 9, side = 4;
  const Geometry& g = s.g;
  const std::int64_t row = s.x.row();
  const auto mask = [&](int b) { return first_lanes(outputs - b * lanes); };
  __m512 sum[blocks][taps], bias[blocks];
#pragma GCC unroll 2
  for (int b = 0; b < blocks; ++b) {
#pragma GCC unroll 9
    for (int t = 0; t < taps; ++t) {
      sum[b][t] = _mm512_maskz_loadu_ps(mask(b), dw + t * g.y.c + b * lanes);
    }
    bias[b] = _mm512_maskz_loadu_ps(mask(b), db + b * lanes);
  }
  for (std::int64_t oy = 0; oy < g.y.h; ++oy) {
    for (std::int64_t ox = 0; ox < g.y.w; ++ox) {
      const float* from = x + 2 * (oy * row + ox);
      __m512 patch = _mm512_castps128_ps512(_mm_loadu_ps(from));
      patch = _mm512_maskz_insertf32x4(0xffff, patch, _mm_loadu_ps(from + row), 1);
      patch = _mm512_maskz_insertf32x4(0xffff, patch, _mm_loadu_ps(from + 2 * row), 2);
      patch = _mm512_maskz_insertf32x4(0xffff, patch, _mm_loadu_ps(from + 3 * row), 3);
#pragma GCC unroll 2
      for (int b = 0; b < blocks; ++b) {
        const std::uint8_t* code = codes + oy * g.code.row + ox * g.y.c + b * lanes;
        const __m128i winners =
            _mm_mask_loadu_epi8(_mm_set1_epi8(static_cast<char>(dead)), mask(b), code);
        const auto alive = static_cast<__mmask16>(~_mm_movepi8_mask(winners));
        const __m512 gradient =
            _mm512_maskz_loadu_ps(alive, gradients + oy * g.y.row + ox * g.y.c + b * lanes);
        bias[b] = _mm512_add_ps(bias[b], gradient);
        const __m512i first = _mm512_maskz_permutexvar_epi32(
            0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, winners),
            _mm512_setr_epi32(0, 1, side, side + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
#pragma GCC unroll 9
        for (int t = 0; t < taps; ++t) {
          const __m512i pixel = _mm512_add_epi32(first, _mm512_set1_epi32(t / 3 * side + t % 3));
          const __m512 value = _mm512_maskz_permutexvar_ps(0xffff, pixel, patch);
          sum[b][t] = _mm512_fmadd_ps(gradient, value, sum[b][t]);
        }
      }
    }
  }
#pragma GCC unroll 2
  for (int b = 0; b < blocks; ++b) {
#pragma GCC unroll 9
    for (int t = 0; t < taps; ++t) {
      _mm512_mask_storeu_ps(dw + t * g.y.c + b * lanes, mask(b), sum[b][t]);
    }
    _mm512_mask_storeu_ps(db + b * lanes, mask(b), bias[b]);
  }
}

void run(const KernelCall& call) {
  const auto& s = *static_cast<const Patches*>(call.state);
  const Geometry& g = s.g;
  auto* padded = static_cast<float*>(call.workspace);
  float *dw = call.out<float>(0), *db = call.out<float>(1);
  std::fill_n(dw, g.taps() * g.y.c, 0.0f);
  std::fill_n(db, g.y.c, 0.0f);
  s.x.clear(padded);
  for (std::int64_t i = 0; i < g.y.n; ++i) {
    const float* x = s.x.sample(call.in<float>(0), i, padded) - g.window.padding.h * s.x.row() -
                     g.window.padding.w;
    const float* gradient = call.in<float>(1) + g.y.at(i, 0, 0);
    const std::uint8_t* code = call.in<std::uint8_t>(2) + g.code.at(i, 0, 0);
    for (std::int64_t k = 0; k < g.y.c; k += 2 * lanes) {
      const std::int64_t rest = g.y.c - k;
      (rest > lanes ? add_patches<2> : add_patches<1>)(s, x, gradient + k, code + k, rest, dw + k,
                                                       db + k);
    }
  }
}

Patches patches(const OpView& op) {
  const Geometry g = Geometry::grad_weight(op);
  return {.g = g, .x = PaddedSamples(g.x, g.window.padding)};
}

bool supports(const OpView& op) {
  const Patches s = patches(op);
  const Window& w = s.g.window;
  return s.g.x.c == 1 && w.kernel == Pair{3, 3} && w.stride == Pair{1, 1} &&
         w.dilation == Pair{1, 1} && s.g.pool == Pair{2, 2} && s.x.fits();
}

}  // namespace

Kernel sparse_patch_grad_weight() {
  return {.name = "sparse_patch",
          .supports = supports,
          .workspace = [](const OpView& op) { return patches(op).x.scratch_bytes(); },
          .prepare = prepare<patches, run>,
          .wanted_halo = padding_halo<Geometry::grad_weight, 0>};
}

#else

Kernel sparse_patch_grad_weight() { return without_avx512("sparse_patch"); }

#endif

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
