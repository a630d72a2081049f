// 2×2 max pooling of a convolution's outputs while they are in registers.
//
// Only for kernels compiled for AVX-512 with bytes and words: ARENITE_POOLING_AVX512 says whether
// this one is.
#pragma once

#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define ARENITE_POOLING_AVX512 1
#include <immintrin.h>

#include <algorithm>
#include <vector>

namespace arenite::codelets::conv2d_relu_max_pool2d {

constexpr std::int64_t lanes = 16;

/// The direct kernel's cycles a window, fitted to measurements: products, pooling, and for few
/// output channels dealing out the columns.
inline double direct_cycles(const Geometry& g) {
  const auto channels = static_cast<double>(g.x.c), outputs = static_cast<double>(g.y.c),
             products = 2.2 * static_cast<double>(g.taps()) * channels;
  const auto vectors = [](std::int64_t n) { return static_cast<double>((n + lanes - 1) / lanes); };
  if (g.y.c >= lanes) return vectors(g.y.c) * (products + 12);
  return outputs * (products + 22) * vectors(g.y.w) / static_cast<double>(g.y.w) + 4 * channels;
}

struct Part {
  std::int64_t first, count;
};

/// 0 … total−1 in as few parts of at most `most` as possible, nearly equal ones.
inline std::vector<Part> split(std::int64_t total, std::int64_t most) {
  const std::int64_t count = (total + most - 1) / most;
  std::vector<Part> parts;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t first = p * total / count;
    parts.push_back({first, (p + 1) * total / count - first});
  }
  return parts;
}

struct Pooled {
  __m512 value;
  __m128i code;  ///< a byte a lane
};

/// Codes of a window's taps and of none, a byte a lane.
struct Codes {
  alignas(16) std::uint8_t tap[4][lanes];
  alignas(16) std::uint8_t none[lanes];
};

constexpr Codes make_codes() {
  Codes codes{};
  for (std::uint8_t t = 0; t < 4; ++t) std::fill_n(codes.tap[t], lanes, t);
  std::fill_n(codes.none, lanes, dead);
  return codes;
}

/// The greatest of a window's taps in row-major order, the first of equals, plus the bias; then
/// ReLU. (Rounding keeps the order, so that the bias may come after the maximum.)
inline Pooled pool(const __m512 (&tap)[4], __m512 bias) {
  static constexpr Codes table = make_codes();
  // Hidden from GCC, which would make every constant in a register, on the port that compares.
  const Codes* codes = &table;
  asm("" : "+r"(codes));
  const auto load = [](const std::uint8_t* c) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(c));
  };
  const __mmask16 right = _mm512_cmp_ps_mask(tap[1], tap[0], _CMP_GT_OQ),
                  lower_right = _mm512_cmp_ps_mask(tap[3], tap[2], _CMP_GT_OQ);
  const __m512 upper = _mm512_mask_mov_ps(tap[0], right, tap[1]),
               below = _mm512_mask_mov_ps(tap[2], lower_right, tap[3]);
  const __mmask16 lower = _mm512_cmp_ps_mask(below, upper, _CMP_GT_OQ);
  __m512 best = _mm512_mask_mov_ps(upper, lower, below);
  __m128i code =
      _mm_mask_mov_epi8(_mm_maskz_mov_epi8(right, load(codes->tap[1])), lower,
                        _mm_mask_mov_epi8(load(codes->tap[2]), lower_right, load(codes->tap[3])));
  // Comparisons lose a NaN, which should win.
  if (_kortestz_mask16_u8(_mm512_cmp_ps_mask(tap[0], tap[1], _CMP_UNORD_Q),
                          _mm512_cmp_ps_mask(tap[2], tap[3], _CMP_UNORD_Q)) == 0) [[unlikely]] {
    for (int t = 0; t < 4; ++t) {
      const __mmask16 nan = _mm512_cmp_ps_mask(tap[t], tap[t], _CMP_UNORD_Q);
      best = _mm512_mask_mov_ps(best, nan, tap[t]);
      code = _mm_mask_mov_epi8(code, nan, load(codes->tap[t]));
    }
  }
  best = _mm512_add_ps(best, bias);
  const __mmask16 alive = _mm512_cmp_ps_mask(best, _mm512_setzero_ps(), _CMP_NLE_UQ);
  return {_mm512_maskz_mov_ps(alive, best), _mm_mask_mov_epi8(load(codes->none), alive, code)};
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d

#endif
