#include "codelets/bfloat16.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace arenite::codelets {

void round_in_integers(const float* from, float* to, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
}

#if defined(__x86_64__)
namespace {

// Compiled for these instructions whatever the rest is compiled for, and called where they are.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void round_in_avx512(
    const float* from, float* to, std::int64_t count) noexcept {
  constexpr std::int64_t lanes = 16;
  for (std::int64_t i = 0; i < count; i += lanes) {
    const std::int64_t left = count - i;
    const auto mask = static_cast<__mmask16>(left >= lanes ? 0xffffu : (1u << left) - 1u);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from + i));
    const __m512i low = _mm512_maskz_cvtepu16_epi32(mask, reinterpret_cast<__m256i>(rounded));
    const __m512i high = _mm512_maskz_slli_epi32(mask, low, 16);
    _mm512_mask_storeu_ps(to + i, mask, _mm512_castsi512_ps(high));
  }
}

}  // namespace

Bfloat16Rounding native_bfloat16_rounding() noexcept {
  const bool there = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512bw");
  return there ? round_in_avx512 : nullptr;
}
#else
Bfloat16Rounding native_bfloat16_rounding() noexcept { return nullptr; }
#endif

Bfloat16Rounding bfloat16_rounding() noexcept {
  const Bfloat16Rounding native = native_bfloat16_rounding();
  return native ? native : round_in_integers;
}

}  // namespace arenite::codelets
