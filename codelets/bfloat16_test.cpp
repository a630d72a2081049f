#include "codelets/bfloat16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace arenite::codelets {
namespace {

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// By distances in double, where 2¹²⁸ stands for infinity: no arithmetic on bits but neighbours'.
std::uint32_t expected(std::uint32_t bits) {
  const std::uint32_t below = bits & 0xffff0000u, above = below + 0x10000u;
  const float value = as_float(bits);
  if (std::isnan(value)) return below | 0x400000u;
  if (std::isinf(value)) return bits;
  if (std::fabs(value) < std::numeric_limits<float>::min()) return bits & 0x80000000u;
  const auto number = [](std::uint32_t of) {
    const float f = as_float(of);
    return std::isinf(f) ? std::ldexp(std::signbit(f) ? -1.0 : 1.0, 128) : static_cast<double>(f);
  };
  const double down = std::fabs(number(bits) - number(below)),
               up = std::fabs(number(above) - number(bits));
  if (down == up) return (below >> 16 & 1u) == 0 ? below : above;
  return down < up ? below : above;
}

/// Every upper half, so every exponent, zeros, infinities and NaNs, with lower halves around the
/// middle between two neighbours; and some more at random.
std::vector<float> special_values() {
  std::vector<float> all;
  for (std::uint32_t upper = 0; upper <= 0xffffu; ++upper) {
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      all.push_back(as_float(upper << 16 | lower));
  }
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) all.push_back(as_float(static_cast<std::uint32_t>(random())));
  return all;
}

std::vector<std::pair<std::string, Bfloat16Rounding>> ways() {
  std::vector<std::pair<std::string, Bfloat16Rounding>> all{{"integers", round_in_integers},
                                                            {"chosen", bfloat16_rounding()}};
  if (native_bfloat16_rounding()) all.emplace_back("native", native_bfloat16_rounding());
  return all;
}

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(to_bfloat16(1.0f), 1.0f);
  EXPECT_EQ(to_bfloat16(0x1.01p0f), 0x1.00p0f);  // halfway between 1 and 1 + 2⁻⁷
  EXPECT_EQ(to_bfloat16(0x1.03p0f), 0x1.04p0f);
  EXPECT_EQ(to_bfloat16(0x1.010002p0f), 0x1.02p0f);
  EXPECT_EQ(to_bfloat16(-0x1.03p0f), -0x1.04p0f);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_bfloat16(infinity), infinity);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::max()), -infinity);
  EXPECT_EQ(bits_of(to_bfloat16(-0.0f)), 0x80000000u);
  EXPECT_EQ(bits_of(to_bfloat16(as_float(0x807fffffu))), 0x80000000u);  // a denormal
  EXPECT_EQ(bits_of(to_bfloat16(as_float(0x7f800001u))), 0x7fc00000u);  // a NaN of low bits only
}

TEST(Bfloat16, EveryWayGivesTheBitsOfTheReference) {
  const std::vector<float> values = special_values();
  for (const auto& [name, round] : ways()) {
    std::vector<float> rounded(values.size(), -1);
    round(values.data(), rounded.data(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(bits_of(rounded[i]), expected(bits_of(values[i])))
          << name << " of 0x" << std::hex << bits_of(values[i]);
    }
  }
}

TEST(Bfloat16, RoundsSoManyAndNoMore) {
  std::vector<float> values;
  for (int i = 0; i < 70; ++i) values.push_back(1.001f + static_cast<float>(i));
  for (const auto& [name, round] : ways()) {
    for (std::size_t count = 0; count < 66; ++count) {
      std::vector<float> rounded(values.size(), -1);
      round(&values[3], &rounded[1], static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < rounded.size(); ++i) {
        const bool meant = i >= 1 && i < 1 + count;
        ASSERT_EQ(rounded[i], meant ? to_bfloat16(values[i + 2]) : -1) << name << " " << count;
      }
    }
  }
}

}  // namespace
}  // namespace arenite::codelets
