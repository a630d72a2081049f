// float32 values rounded to bfloat16, which is the upper half of a float32.
#pragma once

#include "codelets/cuda/qualifiers.hpp"

#include <bit>
#include <cstdint>

namespace arenite::codelets {

/// The nearest float32 whose lower 16 bits are zero; of two, the even one. As vcvtneps2bf16 has it,
/// a denormal becomes a zero of its sign, and a NaN stays one, quiet.
ARENITE_GPU inline float to_bfloat16(float value) noexcept {
#ifdef __CUDA_ARCH__
  const std::uint32_t bits = __float_as_uint(value);
#else
  const auto bits = std::bit_cast<std::uint32_t>(value);
#endif
  const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits & 0x80000000u;
  const std::uint32_t nearest = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
  const std::uint32_t normal = magnitude > 0x7f800000u ? quiet : nearest;
  const std::uint32_t rounded = magnitude < 0x800000u ? sign : normal & 0xffff0000u;
#ifdef __CUDA_ARCH__
  return __uint_as_float(rounded);
#else
  return std::bit_cast<float>(rounded);
#endif
}

/// to[i] = to_bfloat16(from[i]).
using Bfloat16Rounding = void (*)(const float* from, float* to, std::int64_t count) noexcept;

void round_in_integers(const float* from, float* to, std::int64_t count) noexcept;

/// The CPU's own instruction where it has one; nullptr elsewhere.
Bfloat16Rounding native_bfloat16_rounding() noexcept;

/// The faster one of those that there are. All give the same bits.
Bfloat16Rounding bfloat16_rounding() noexcept;

}  // namespace arenite::codelets
