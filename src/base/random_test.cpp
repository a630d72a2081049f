#include <arenite/error.hpp>
#include <arenite/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace arenite {
namespace {

// The published known answers of Random123 (tests/kat_vectors, philox4x32 10).
static_assert(philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                            {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, KnownAnswersHoldAtRunTimeToo) {
  volatile std::uint32_t zero = 0;
  EXPECT_EQ(philox4x32_10({zero, 0, 0, 0}, {zero, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, WordsComeFromTheirBlock) {
  const Philox random(7, Purpose::dropout, 3);
  for (std::uint64_t index : {0ull, 1ull, 5ull, 4'000'000'003ull, 1ull << 40}) {
    EXPECT_EQ(random.bits(index), random.block(index / 4)[index % 4]);
  }
}

TEST(Philox, SeedPurposeStreamAndIndexAllCount) {
  const std::uint32_t word = Philox(1, Purpose::shuffle).bits(0);
  EXPECT_EQ(word, Philox(1, Purpose::shuffle).bits(0));
  EXPECT_NE(word, Philox(2, Purpose::shuffle).bits(0));
  EXPECT_NE(word, Philox(1 + (1ull << 32), Purpose::shuffle).bits(0));
  EXPECT_NE(word, Philox(1, Purpose::dropout).bits(0));
  EXPECT_NE(word, Philox(1, Purpose::shuffle, 1).bits(0));
  EXPECT_NE(word, Philox(1, Purpose::shuffle).bits(1));
}

TEST(Philox, UniformHasTheRightMomentsAndRange) {
  const Philox random(42, Purpose::initialise);
  constexpr int count = 200'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const float x = random.uniform(static_cast<std::uint64_t>(i));
    ASSERT_GE(x, 0.0f);
    ASSERT_LT(x, 1.0f);
    sum += x;
    squares += double{x} * x;
  }
  // Five standard deviations of the mean are 0.0032.
  EXPECT_NEAR(sum / count, 0.5, 0.0033);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.0035);
}

TEST(Philox, UniformNeverReachesTheUpperEnd) {
  const Philox random(1, Purpose::initialise);
  const float narrow_high = std::nextafter(1.0f, 2.0f);
  const float huge = std::numeric_limits<float>::max();
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(random.uniform(i, 1.0f, narrow_high), 1.0f);
    const float wide = random.uniform(i, -huge, huge);
    EXPECT_GE(wide, -huge);
    EXPECT_LT(wide, huge);
    const float x = random.uniform(i, -0.25f, 0.5f);
    EXPECT_GE(x, -0.25f);
    EXPECT_LT(x, 0.5f);
  }
  EXPECT_EQ(random.uniform(0, 2.0f, 2.0f), 2.0f);
}

TEST(Philox, BelowIsUniform) {
  const Philox random(9, Purpose::augment);
  constexpr std::uint32_t bound = 7;
  constexpr int count = 70'000;
  std::array<int, bound> seen{};
  for (std::uint64_t i = 0; i < count; ++i) ++seen[random.below(i, bound)];
  double chi_square = 0;
  for (int n : seen) chi_square += std::pow(n - count / double{bound}, 2) / (count / double{bound});
  EXPECT_LT(chi_square, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(Philox, BelowRejectsWhatWouldBias) {
  // With this bound nearly half of all words must be drawn again; multiply-shift alone would give
  // even results twice as often as odd ones.
  constexpr std::uint32_t bound = 0x8000'0001u;
  const Philox random(3, Purpose::augment);
  int odd = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint32_t x = random.below(i, bound);
    ASSERT_LT(x, bound);
    odd += static_cast<int>(x & 1);
  }
  EXPECT_NEAR(odd, 10'000, 360);
  EXPECT_EQ(random.below(0, 0), 0u);
  EXPECT_EQ(random.below(0, 1), 0u);
}

TEST(Permutation, IsOneAndDependsOnSeedAndEpoch) {
  for (std::int64_t count : {0, 1, 2, 3, 64, 60'000}) {
    std::vector<std::int32_t> order = permutation(count, 1, 0);
    std::vector<std::int32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int32_t> expected(static_cast<std::size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(sorted, expected);
  }
  EXPECT_EQ(permutation(100, 1, 0), permutation(100, 1, 0));
  EXPECT_NE(permutation(100, 1, 0), permutation(100, 1, 1));
  EXPECT_NE(permutation(100, 1, 0), permutation(100, 2, 0));
  EXPECT_THROW(permutation(-1, 1, 0), Error);
  EXPECT_THROW(permutation(std::int64_t{1} << 31, 1, 0), Error);
}

TEST(Permutation, IsTheSameOnEveryMachine) {
  EXPECT_EQ(permutation(10, 1, 0), (std::vector<std::int32_t>{9, 0, 4, 1, 6, 3, 2, 8, 7, 5}));
}

TEST(Permutation, EveryOrderIsAsLikely) {
  std::array<int, 6> seen{};
  for (std::uint32_t epoch = 0; epoch < 12'000; ++epoch) {
    const std::vector<std::int32_t> p = permutation(3, 5, epoch);
    ++seen[static_cast<std::size_t>(p[0] * 2 + (p[1] > p[2]))];
  }
  for (int n : seen) EXPECT_NEAR(n, 2000, 205);  // five standard deviations
}

}  // namespace
}  // namespace arenite
