// 2×2 and 3×3 max pooling of a convolution's outputs while they are in registers.
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
  alignas(16) std::uint8_t tap[9][lanes];
  alignas(16) std::uint8_t none[lanes];
};

constexpr Codes make_codes() {
  Codes codes{};
  for (std::uint8_t t = 0; t < 9; ++t) std::fill_n(codes.tap[t], lanes, t);
  std::fill_n(codes.none, lanes, dead);
  return codes;
}

/// Hidden from GCC, which would make every constant in a register, on the port that compares.
inline const Codes* codes_table() noexcept {
  static constexpr Codes table = make_codes();
  const Codes* codes = &table;
  asm("" : "+r"(codes));
  return codes;
}

inline __m128i load_codes(const std::uint8_t* codes) noexcept {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(codes));
}

/// Comparisons lose a NaN, which should win: puts in those that there are.
template <int taps>
inline void keep_nan(const __m512 (&tap)[taps], const Codes* codes, Pooled& best) {
  for (int t = 0; t < taps; ++t) {
    const __mmask16 nan = _mm512_cmp_ps_mask(tap[t], tap[t], _CMP_UNORD_Q);
    best.value = _mm512_mask_mov_ps(best.value, nan, tap[t]);
    best.code = _mm_mask_mov_epi8(best.code, nan, load_codes(codes->tap[t]));
  }
}

/// Adds the bias; then ReLU. (Rounding keeps the order, so that the bias may come after the
/// maximum; it may make equals of two taps, of which the greater was chosen then.)
inline Pooled finish(Pooled best, __m512 bias, const Codes* codes) {
  const __m512 value = _mm512_add_ps(best.value, bias);
  const __mmask16 alive = _mm512_cmp_ps_mask(value, _mm512_setzero_ps(), _CMP_NLE_UQ);
  return {_mm512_maskz_mov_ps(alive, value),
          _mm_mask_mov_epi8(load_codes(codes->none), alive, best.code)};
}

/// The greatest of a window's taps in row-major order, the first of equals.
inline Pooled pool(const __m512 (&tap)[4], __m512 bias) {
  const Codes* codes = codes_table();
  const __mmask16 right = _mm512_cmp_ps_mask(tap[1], tap[0], _CMP_GT_OQ),
                  lower_right = _mm512_cmp_ps_mask(tap[3], tap[2], _CMP_GT_OQ);
  const __m512 upper = _mm512_mask_mov_ps(tap[0], right, tap[1]),
               below = _mm512_mask_mov_ps(tap[2], lower_right, tap[3]);
  const __mmask16 lower = _mm512_cmp_ps_mask(below, upper, _CMP_GT_OQ);
  Pooled best{_mm512_mask_mov_ps(upper, lower, below),
              _mm_mask_mov_epi8(_mm_maskz_mov_epi8(right, load_codes(codes->tap[1])), lower,
                                _mm_mask_mov_epi8(load_codes(codes->tap[2]), lower_right,
                                                  load_codes(codes->tap[3])))};
  if (_kortestz_mask16_u8(_mm512_cmp_ps_mask(tap[0], tap[1], _CMP_UNORD_Q),
                          _mm512_cmp_ps_mask(tap[2], tap[3], _CMP_UNORD_Q)) == 0) [[unlikely]] {
    keep_nan(tap, codes, best);
  }
  return finish(best, bias, codes);
}

inline Pooled pool(const __m512 (&tap)[9], __m512 bias) {
  const Codes* codes = codes_table();
  Pooled best{tap[0], _mm_setzero_si128()};
  __mmask16 nan = _mm512_cmp_ps_mask(tap[0], tap[0], _CMP_UNORD_Q);
#pragma GCC unroll 9
  for (int t = 1; t < 9; ++t) {
    const __mmask16 greater = _mm512_cmp_ps_mask(tap[t], best.value, _CMP_GT_OQ);
    best.value = _mm512_mask_mov_ps(best.value, greater, tap[t]);
    best.code = _mm_mask_mov_epi8(best.code, greater, load_codes(codes->tap[t]));
    if (t % 2 == 0) nan |= _mm512_cmp_ps_mask(tap[t - 1], tap[t], _CMP_UNORD_Q);
  }
  if (nan) [[unlikely]]
    keep_nan(tap, codes, best);
  return finish(best, bias, codes);
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d

#endif
