// Blocks whose phases are loops, and what they take indices apart with.
#include "codelets/cuda/blocks.hpp"

#include <gtest/gtest.h>

#include "codelets/cuda/divisor.hpp"

#include <cmath>
#include <random>
#include <vector>

namespace arenite::codelets::cuda {
namespace {

/// Turns each of several rows of 8 numbers around: in two phases, or in one, which is wrong.
template <bool in_two_phases>
struct Reversal {
  static constexpr int threads = 8;
  struct Shared {
    float row[threads];
  };

  const float* from;
  float* to;

  void operator()(Block<threads> block, Shared& shared) const {
    PerThread<float, threads> mine;
    block.each([&](int t) {
      mine[t] = from[block.index * threads + t];
      shared.row[t] = mine[t];
      if (!in_two_phases) take(block, shared, t);
    });
    block.each([&](int t) {
      EXPECT_EQ(mine[t], from[block.index * threads + t]);
      if (in_two_phases) take(block, shared, t);
    });
  }

  void take(Block<threads> block, const Shared& shared, int t) const {
    to[block.index * threads + t] = shared.row[threads - 1 - t];
  }
};

template <bool in_two_phases>
std::vector<float> reversed(bool first, const KernelCall& call = {}) {
  from_the_first() = first;
  std::vector<float> from(24), to(24, -1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  for_each_block(call, 3, Reversal<in_two_phases>{from.data(), to.data()});
  return to;
}

TEST(Blocks, ShareWhatAnEarlierPhaseWrote) {
  for (const bool first : {true, false}) {
    const std::vector<float> to = reversed<true>(first);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t row = i / 8;
      EXPECT_EQ(to[i], static_cast<float>(8 * row + 7 - i % 8));
    }
  }
}

// What is shared begins as NaN, and no thread of a phase can count on another.
TEST(Blocks, ShowThreadsThatDoNotWait) {
  for (const bool first : {true, false}) {
    int unknown = 0;
    for (float value : reversed<false>(first)) unknown += std::isnan(value) ? 1 : 0;
    EXPECT_EQ(unknown, 12);
  }
}

TEST(Blocks, LeaveStateAloneOnceAStepHasFailed) {
  runtime::StatusWord status, failed;
  failed.report(0, 1);
  const std::vector<float> to = reversed<true>(true, {.status = &status, .failed = &failed});
  EXPECT_EQ(to, std::vector<float>(24, -1));
}

TEST(Divisor, DividesAsTheMachineDoes) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> any(1, most);
  std::vector<std::int64_t> divisors{1, 2, 3, 5, 6, 7, 9, 10, 28, 49, 64, 196, 784, 1 << 30, most};
  for (int i = 0; i < 200; ++i) divisors.push_back(any(random) >> (i % 31));
  for (std::int64_t by : divisors) {
    if (by == 0) continue;
    const Divisor divisor(by);
    EXPECT_EQ(divisor.value(), by);
    std::vector<std::int64_t> indices{0, 1, by - 1, by, most - 1, most, most / by * by - 1};
    for (int i = 0; i < 50; ++i) indices.push_back(any(random));
    for (std::int64_t index : indices) {
      const Divisor::Parts parts = divisor.parts(static_cast<std::int32_t>(index));
      ASSERT_EQ(parts.quotient, index / by) << index << " / " << by;
      ASSERT_EQ(parts.remainder, index % by) << index << " % " << by;
    }
  }
}

}  // namespace
}  // namespace arenite::codelets::cuda
