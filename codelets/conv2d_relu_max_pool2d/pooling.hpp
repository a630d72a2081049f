// 2×2 max pooling of a convolution's outputs while they are in registers.
#pragma once

#include "codelets/avx512.hpp"
#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

#ifdef ARENITE_AVX512

#include <algorithm>

namespace arenite::codelets::conv2d_relu_max_pool2d {

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
/// ReLU. (Rounding keeps the order, so that the bias may come after the maximum; it may make equals
/// of two taps, of which the greater was chosen then.)
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
