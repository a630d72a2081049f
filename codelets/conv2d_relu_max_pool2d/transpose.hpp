// 16x16 transposes of bytes in registers, for the sparse backward kernels.
//
// Backward of the fused convolution knows, from one code byte a pooled output, the only tap of each
// window that has a gradient, or that none has. Visiting those alone does a quarter of the work
// where windows are 2x2, and an eighth where half of them are dead.
#pragma once

#include "codelets/transpose.hpp"

#ifdef ARENITE_AVX512

namespace arenite::codelets::conv2d_relu_max_pool2d::sparse {

using codelets::transpose;

/// The same for bytes, in place: 16 rows side by side at a multiple of 64 bytes.
inline void transpose(std::uint8_t* bytes) noexcept {
  const auto line = [&](int i) { return bytes + 64 * i; };
  // Each dword of part j, lane quarter l: 4 columns (of quad j) of one row of 4l…4l+3.
  __m512i part[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const auto row = [&](int l) {
      return _mm_load_si128(reinterpret_cast<const __m128i*>(line(l) + 16 * r));
    };
    part[r] = _mm512_castsi128_si512(row(0));
    part[r] = _mm512_maskz_inserti32x4(0xffff, part[r], row(1), 1);
    part[r] = _mm512_maskz_inserti32x4(0xffff, part[r], row(2), 2);
    part[r] = _mm512_maskz_inserti32x4(0xffff, part[r], row(3), 3);
  }
  const __m512i low01 = _mm512_maskz_unpacklo_epi32(0xffff, part[0], part[1]),
                low23 = _mm512_maskz_unpacklo_epi32(0xffff, part[2], part[3]),
                high01 = _mm512_maskz_unpackhi_epi32(0xffff, part[0], part[1]),
                high23 = _mm512_maskz_unpackhi_epi32(0xffff, part[2], part[3]);
  part[0] = _mm512_maskz_unpacklo_epi64(0xff, low01, low23);
  part[1] = _mm512_maskz_unpackhi_epi64(0xff, low01, low23);
  part[2] = _mm512_maskz_unpacklo_epi64(0xff, high01, high23);
  part[3] = _mm512_maskz_unpackhi_epi64(0xff, high01, high23);
  // 4x4 bytes within each quarter, then 4x4 dwords across them.
  const __m512i within = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400),
                across = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512i columns = _mm512_shuffle_epi8(part[j], within);
    _mm512_store_si512(line(j), _mm512_maskz_permutexvar_epi32(0xffff, across, columns));
  }
}

}  // namespace arenite::codelets::conv2d_relu_max_pool2d::sparse

#endif
