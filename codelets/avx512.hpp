// What kernels written in AVX-512 instructions share. Such a file holds its kernel between
// `#ifdef ARENITE_AVX512` and `#else`, and `without_avx512` after it.
#pragma once

#include "codelets/registry.hpp"

#include <arenite/error.hpp>

#include <cstdint>

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ARENITE_AVX512
#include <immintrin.h>
#endif

namespace arenite::codelets {

/// Whether kernels were compiled with ARENITE_AVX512. Other files, compiled for any machine, cannot
/// tell by the macro.
bool built_with_avx512() noexcept;

constexpr std::int64_t lanes = 16;  ///< floats of a vector

/// In place of a kernel that this build has no instructions for.
inline Kernel without_avx512(const std::string& name) {
  return {.name = name,
          .supports = [](const OpView&) -> graph::Support { return "a build without AVX-512"; },
          .prepare = [name](const OpView&) -> PreparedKernel {
            fail({.found = "kernel '" + name + "' in a build without AVX-512",
                  .expected = "another kernel"});
          }};
}

#ifdef ARENITE_AVX512

/// The first `count` lanes (at least none), or all of them.
inline __mmask16 first_lanes(std::int64_t count) noexcept {
  return count >= lanes ? 0xffff : static_cast<__mmask16>((1u << count) - 1);
}

/// 0 where x is at most 0; a NaN stays a NaN.
inline __m512 relu(__m512 x) noexcept {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ), x);
}

/// The gradient where relu's output is not 0.
inline __m512 relu_grad(__m512 output, __m512 gradient) noexcept {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(output, _mm512_setzero_ps(), _CMP_NLE_UQ),
                             gradient);
}

#endif

}  // namespace arenite::codelets
