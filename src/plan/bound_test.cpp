#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

/// The least peak of a problem of one space, by trying every order of stacking. In some optimal
/// plan, sorted by offset, each buffer stands on an earlier one (or is fixed), so that this order,
/// with each buffer as low as the conflicting ones before it allow, is among those tried.
class Exhaustive {
 public:
  explicit Exhaustive(const Problem& problem) : problem_(problem), top_(problem.size(), -1) {}

  std::int64_t least_peak() {
    place(0, 0);
    return best_;
  }

 private:
  void place(std::size_t placed, std::int64_t peak) {
    if (peak >= best_) return;
    if (placed == problem_.size()) {
      best_ = peak;
      return;
    }
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (top_[i] >= 0) continue;
      std::int64_t offset = 0;
      for (std::size_t j = 0; j < problem_.size(); ++j) {
        if (top_[j] > offset && problem_.conflict(i, j) && problem_[j].bytes > 0) offset = top_[j];
      }
      offset = problem_[i].bytes == 0 ? 0 : round_up(offset, problem_[i].alignment);
      if (problem_[i].offset) {
        if (problem_[i].bytes > 0 && offset > *problem_[i].offset) continue;
        offset = *problem_[i].offset;
      }
      top_[i] = offset + problem_[i].bytes;
      place(placed + 1, problem_[i].bytes == 0 ? peak : std::max(peak, top_[i]));
      top_[i] = -1;
    }
  }

  const Problem& problem_;
  std::vector<std::int64_t> top_;  // -1: not placed
  std::int64_t best_ = std::numeric_limits<std::int64_t>::max();
};

/// The heaviest set of pairwise conflicting buffers, in true bytes.
std::int64_t heaviest_clique(const Problem& problem) {
  std::int64_t best = 0;
  for (unsigned set = 0; set < 1u << problem.size(); ++set) {
    std::int64_t bytes = 0;
    bool good = true;
    for (std::size_t i = 0; good && i < problem.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      bytes += problem[i].bytes;
      for (std::size_t j = 0; good && j < i; ++j) {
        good = (set >> j & 1) == 0 || problem.conflict(i, j);
      }
    }
    if (good) best = std::max(best, bytes);
  }
  return best;
}

TEST(LowerBound, PadsAllButTheTopmost) {
  Problem problem;
  problem.add({.name = "a", .bytes = 100, .lifetime = {0, 1}});
  problem.add({.name = "b", .bytes = 300, .lifetime = {0, 1}});
  const Plan plan = solve(problem);
  EXPECT_EQ(plan.max_live, 256 + 300);
  EXPECT_EQ(plan.peak, 256 + 300);
  EXPECT_TRUE(plan.optimal);
}

TEST(LowerBound, LooselyAlignedBuffersMayFillPadding) {
  Problem problem;
  problem.add({.name = "a", .bytes = 100, .lifetime = {0, 1}});
  problem.add({.name = "b", .bytes = 100, .lifetime = {0, 1}});
  problem.add({.name = "c", .bytes = 80, .lifetime = {0, 1}, .alignment = 1});
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.lower_bound, 256 + 100);
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{0, 256, 100}));
  EXPECT_TRUE(plan.optimal);
}

TEST(LowerBound, NamesTheBuffersBehindIt) {
  Problem problem;
  problem.add({.name = "z", .bytes = 256, .lifetime = {0, 2}});
  problem.add({.name = "a", .bytes = 256, .lifetime = {1, 3}});
  problem.add({.name = "m", .bytes = 256, .lifetime = {2, 3}});
  const auto bounds = lower_bounds(problem);
  EXPECT_EQ(bounds[0].max_live, 512);
  EXPECT_EQ(bounds[0].witness, (std::vector<std::size_t>{1, 0}));
}

TEST(LowerBound, CountsFixedBuffers) {
  Problem problem;
  problem.add({.name = "a", .bytes = 256, .lifetime = {0, 1}, .offset = 4096});
  EXPECT_EQ(lower_bounds(problem)[0].max_live, 256);
  EXPECT_EQ(lower_bounds(problem)[0].lower_bound, 4096 + 256);
  EXPECT_TRUE(solve(problem).optimal);
}

// With alignment 1 the flow must find exactly the heaviest antichain.
TEST(LowerBound, AntichainsAgreeWithBruteForce) {
  std::mt19937 random(5);
  for (int round = 0; round < fewer_where_slow(2000); ++round) {
    Problem problem;
    const std::int64_t n = 1 + below(random, 10);
    for (std::int64_t i = 0; i < n; ++i) {
      problem.add({.name = std::to_string(i), .bytes = below(random, 20), .alignment = 1});
    }
    problem.set_precedence(random_order(random, problem.size(), random() % 70));
    const auto bound = lower_bounds(problem)[0];
    ASSERT_EQ(bound.max_live, heaviest_clique(problem));
    std::int64_t bytes = 0;
    for (const std::size_t i : bound.witness) {
      bytes += problem[i].bytes;
      for (const std::size_t j : bound.witness) ASSERT_TRUE(i == j || problem.conflict(i, j));
    }
    ASSERT_EQ(bytes, bound.max_live);
  }
}

// On an interval order the antichain and the sweep over time are two ways to one number.
TEST(LowerBound, AntichainOfIntervalsIsMaxLive) {
  std::mt19937 random(6);
  for (int round = 0; round < fewer_where_slow(300); ++round) {
    Problem intervals;
    Problem ordered;
    const std::int64_t n = 1 + below(random, 120);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t begin = below(random, 100);
      const Buffer buffer{.name = std::to_string(i),
                          .bytes = below(random, 1000),
                          .lifetime = {begin, begin + 1 + below(random, 30)},
                          .alignment = 1};
      intervals.add(buffer);
      ordered.add(buffer);
    }
    Precedence order(intervals.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      for (std::size_t j = 0; j < intervals.size(); ++j) {
        if (intervals.before(i, j)) order.set_before(i, j);
      }
    }
    ordered.set_precedence(order);
    ASSERT_EQ(lower_bounds(intervals)[0].max_live, lower_bounds(ordered)[0].max_live);
    const Plan a = solve(intervals, {.strategy = "bump"});
    const Plan b = solve(ordered, {.strategy = "bump"});
    ASSERT_EQ(a.offsets, b.offsets);
  }
}

void check_against_exhaustive(const Problem& problem, int& optimal) {
  const std::int64_t least = Exhaustive(problem).least_peak();
  for (const StrategyInfo& info : strategies()) {
    const Plan plan = solve(problem, {.strategy = std::string(info.name), .effort = Effort::fast});
    ASSERT_NO_THROW(verify(problem, plan));
    ASSERT_GE(plan.peak, least);
    ASSERT_LE(plan.lower_bound, least);
    ASSERT_LE(plan.max_live, plan.lower_bound);
    if (plan.optimal) {
      ASSERT_EQ(plan.peak, least);
    }
  }
  if (solve(problem, {.effort = Effort::fast}).optimal) ++optimal;
}

constexpr int rounds = fewer_where_slow(1000);

TEST(LowerBound, NeverAboveTheOptimumOfIntervals) {
  std::mt19937 random(1);
  int optimal = 0;
  for (int round = 0; round < rounds; ++round) {
    check_against_exhaustive(random_intervals(random, 1 + below(random, 6)), optimal);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(optimal, rounds / 2);
}

TEST(LowerBound, NeverAboveTheOptimumOfOrders) {
  std::mt19937 random(2);
  int optimal = 0;
  for (int round = 0; round < rounds; ++round) {
    check_against_exhaustive(random_ordered(random, 1 + below(random, 6)), optimal);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(optimal, rounds / 2);
}

TEST(LowerBound, NeverAboveTheOptimumWithGaps) {
  std::mt19937 random(4);
  int optimal = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::int64_t n = 1 + below(random, 6);
    check_against_exhaustive(
        round % 2 == 0 ? random_gaps(random, n) : random_gaps_ordered(random, n), optimal);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(optimal, rounds / 2);
}

TEST(LowerBound, NeverAboveTheOptimumWithFixedBuffers) {
  std::mt19937 random(3);
  int optimal = 0;
  int solved = 0;
  while (solved < rounds / 2) {
    const Problem free = random_intervals(random, 5);
    Problem problem;
    for (std::size_t i = 0; i < free.size(); ++i) {
      Buffer buffer = free[i];
      if (below(random, 3) == 0) buffer.offset = buffer.alignment * below(random, 5);
      problem.add(buffer);
    }
    if (error_of([&] { problem.validate(); }) != "(no error)") continue;
    check_against_exhaustive(problem, optimal);
    if (HasFatalFailure()) return;
    ++solved;
  }
}

}  // namespace
}  // namespace arenite::plan
