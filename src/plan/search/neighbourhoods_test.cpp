#include "src/plan/search/neighbourhoods.hpp"

#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "src/plan/search/conflicts.hpp"
#include "src/plan/search/search.hpp"
#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

/// Of many buffers, a few of them alive at a time, and some for long.
Problem long_line(std::mt19937& random, std::int64_t buffers) {
  Problem problem;
  for (std::int64_t i = 0; i < buffers; ++i) {
    const std::int64_t begin = below(random, buffers);
    const std::int64_t length = 1 + below(random, i % 7 == 0 ? buffers / 2 : 16);
    problem.add({.name = "b" + std::to_string(i),
                 .bytes = 1 + below(random, 900),
                 .lifetime = {begin, begin + length},
                 .alignment = std::int64_t{1} << below(random, 4)});
  }
  return problem;
}

Instance only_space(const Problem& problem) { return split_by_space(problem).front().instance; }

std::int64_t best_first_fit(const Problem& problem) {
  std::int64_t best = 0;
  for (const char* name : {"first_fit_by_size", "first_fit_by_area", "first_fit_by_lifetime"}) {
    const std::int64_t peak = solve(problem, {.strategy = name}).peak;
    best = best == 0 ? peak : std::min(best, peak);
  }
  return best;
}

void expect_every_conflict_once(const Problem& problem) {
  const Instance instance = only_space(problem);
  const Conflicts conflicts(instance);
  const std::vector<std::size_t>& items = conflicts.items();
  ASSERT_EQ(items.size(), instance.items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::vector<std::size_t> found;
    conflicts.visit(i, [&](std::size_t j) { found.push_back(j); });
    std::sort(found.begin(), found.end());
    std::vector<std::size_t> expected;
    for (std::size_t j = 0; j < items.size(); ++j) {
      if (i != j && instance.conflict(items[i], items[j])) expected.push_back(j);
    }
    ASSERT_EQ(found, expected) << i;
  }
}

TEST(Conflicts, AreVisitedOnceOnALine) {
  std::mt19937 random(1);
  for (const std::int64_t buffers : {2, 20, 500}) {
    expect_every_conflict_once(long_line(random, buffers));
    expect_every_conflict_once(random_intervals(random, buffers));
  }
}

TEST(Conflicts, AreVisitedOnceWithGapsAndInAnOrder) {
  std::mt19937 random(2);
  for (const std::int64_t buffers : {3, 20, 150}) {
    expect_every_conflict_once(random_gaps(random, buffers));
    expect_every_conflict_once(random_ordered(random, buffers));
  }
}

TEST(Neighbourhoods, ImproveOnFirstFit) {
  std::mt19937 random(3);
  std::int64_t first = 0;
  std::int64_t improved = 0;
  for (int round = 0; round < 3; ++round) {
    const Problem problem = long_line(random, 400);
    const Plan plan = solve(problem, {.strategy = "large_neighbourhoods", .effort = Effort::fast});
    verify(problem, plan);
    first += best_first_fit(problem);
    improved += plan.peak;
  }
  EXPECT_LT(improved, first);
}

// In a partial order of so many the exact search does not begin.
TEST(Neighbourhoods, TakeWhatTheSearchCannot) {
  std::mt19937 random(4);
  Problem problem;
  for (std::size_t i = 0; i < most_items_in_an_order + 100; ++i) {
    problem.add({.name = "b" + std::to_string(i), .bytes = 1 + below(random, 900), .alignment = 1});
  }
  problem.set_precedence(random_order(random, problem.size(), 1));
  const Plan plan = solve(problem, {.effort = Effort::fast});
  verify(problem, plan);
  EXPECT_LT(plan.peak, best_first_fit(problem));
}

TEST(Neighbourhoods, EndWhereFixedBuffersLeaveNoRoom) {
  Problem problem;
  problem.add({.name = "wall", .bytes = 5, .lifetime = {0, 4}, .alignment = 1, .offset = 5});
  problem.add({.name = "long", .bytes = 6, .lifetime = {0, 9}, .alignment = 1});
  problem.add({.name = "late", .bytes = 3, .lifetime = {5, 9}, .alignment = 1});
  const Instance instance = only_space(problem);
  const Packing packing =
      search_neighbourhoods(instance, {.lower_bound = 11, .work = std::int64_t{1} << 60});
  EXPECT_EQ(peak_of(instance, packing.offsets), 16);
}

}  // namespace
}  // namespace arenite::plan
