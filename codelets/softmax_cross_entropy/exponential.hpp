// exp(x) in single precision for loops that the compiler vectorises (std::exp would be a call a
// lane).
#pragma once

#include <bit>
#include <cstdint>

namespace arenite::codelets {

/// Within 2 ulp of exp(x) for x in [-87.3, 88.3]; 0 below (where float turns denormal), NaN for
/// NaN. Not for larger x.
///
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2, and exp(x) = 2ⁿ·exp(r). Adding 1.5·2²³ rounds to the integer
/// n and leaves it in the low bits; ln 2 is subtracted in two parts so that r is exact; the
/// polynomial is the one of the Cephes library (S. Moshier, expf.c). No branch and no table.
inline float exponential(float x) noexcept {
  constexpr float least = -87.3f, log2_e = 1.44269504088896341f;
  constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  constexpr float rounder = 12582912.0f;
  constexpr std::uint32_t rounder_bits = 0x4b400000u, exponent_bias = 127, mantissa_bits = 23;
  const float clamped = x < least ? least : x;
  const float shifted = clamped * log2_e + rounder;
  const float n = shifted - rounder;
  const float r = (clamped - n * ln2_high) - n * ln2_low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // Unsigned: for NaN the bits are no number, and wrap around harmlessly.
  const std::uint32_t exponent =
      std::bit_cast<std::uint32_t>(shifted) - rounder_bits + exponent_bias;
  const float power = std::bit_cast<float>(exponent << mantissa_bits);
  return x < least ? 0.0f : p * power;
}

}  // namespace arenite::codelets
