// 16x16 transposes of floats in registers.
#pragma once

#include "codelets/avx512.hpp"

#ifdef ARENITE_AVX512

namespace arenite::codelets {

/// Lane l of column c is element c of row l; rows are `stride` floats apart. Loads do half of the
/// shuffling: each fills a vector with the same 4 columns of every fourth row.
inline void transpose(const float* rows, std::int64_t stride, __m512 (&columns)[lanes]) noexcept {
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad) {
    __m512 part[4];  // lanes 4l…4l+3 of part r: 4 columns of row 4l + r
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const float* from = rows + r * stride + 4 * quad;
      part[r] = _mm512_castps128_ps512(_mm_loadu_ps(from));
      part[r] = _mm512_maskz_insertf32x4(0xffff, part[r], _mm_loadu_ps(from + 4 * stride), 1);
      part[r] = _mm512_maskz_insertf32x4(0xffff, part[r], _mm_loadu_ps(from + 8 * stride), 2);
      part[r] = _mm512_maskz_insertf32x4(0xffff, part[r], _mm_loadu_ps(from + 12 * stride), 3);
    }
    const __m512d low01 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(0xffff, part[0], part[1])),
                  low23 = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(0xffff, part[2], part[3])),
                  high01 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(0xffff, part[0], part[1])),
                  high23 = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(0xffff, part[2], part[3]));
    columns[4 * quad] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, low01, low23));
    columns[4 * quad + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, low01, low23));
    columns[4 * quad + 2] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, high01, high23));
    columns[4 * quad + 3] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, high01, high23));
  }
}

}  // namespace arenite::codelets

#endif
