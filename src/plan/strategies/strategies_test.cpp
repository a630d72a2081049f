#include <arenite/plan/solve.hpp>
#include <arenite/plan/static_allocator.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/plan/strategies/ordered_fit.hpp"
#include "src/plan/strategies/slots.hpp"
#include "src/plan/strategies/strategy.hpp"
#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

using Offsets = std::vector<std::int64_t>;

/// What a program that asks an allocator at run time would get, by buffer.
Offsets replay(const Problem& problem, std::int64_t alignment) {
  std::map<std::int64_t, std::vector<std::size_t>> begins;
  std::map<std::int64_t, std::vector<std::size_t>> ends;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < problem.size(); ++i) by_name[problem[i].name] = i;
  for (const auto& [name, i] : by_name) {
    begins[problem[i].lifetime.begin].push_back(i);
    ends[problem[i].lifetime.end].push_back(i);
  }
  StaticAllocator arena(alignment);
  Offsets offsets(problem.size(), 0);
  for (std::int64_t now = 0; now < 100; ++now) {
    for (const std::size_t i : ends[now]) arena.free(offsets[i], problem[i].bytes);
    for (const std::size_t i : begins[now]) offsets[i] = arena.allocate(problem[i].bytes);
  }
  return offsets;
}

Problem random_program(std::mt19937& random, std::int64_t alignment) {
  Problem problem;
  const std::int64_t buffers = 2 + below(random, 60);
  for (std::int64_t i = 0; i < buffers; ++i) {
    const std::int64_t begin = below(random, 30);
    // An allocator rounds sizes; a plan may let another buffer begin in the padding.
    problem.add({.name = "b" + std::to_string(i),
                 .bytes = round_up(below(random, 40), alignment),
                 .lifetime = {begin, begin + 1 + below(random, 12)},
                 .alignment = alignment});
  }
  return problem;
}

TEST(BestFitInTime, IsWhatTheAllocatorDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t alignment = round % 2 == 0 ? 1 : 8;
    const Problem problem = random_program(random, alignment);
    EXPECT_EQ(solve(problem, {.strategy = "best_fit_in_time"}).offsets, replay(problem, alignment))
        << round;
  }
}

TEST(FirstFitInTime, TakesTheLowestBlockThatFits) {
  Problem problem;
  problem.add({.name = "a", .bytes = 30, .lifetime = {0, 1}, .alignment = 1});
  problem.add({.name = "b", .bytes = 10, .lifetime = {0, 4}, .alignment = 1});
  problem.add({.name = "c", .bytes = 20, .lifetime = {0, 1}, .alignment = 1});
  problem.add({.name = "d", .bytes = 10, .lifetime = {0, 4}, .alignment = 1});
  problem.add({.name = "e", .bytes = 20, .lifetime = {1, 2}, .alignment = 1});
  EXPECT_EQ(solve(problem, {.strategy = "first_fit_in_time"}).offsets[4], 0);
  EXPECT_EQ(solve(problem, {.strategy = "best_fit_in_time"}).offsets[4], 40);
}

// As in TFLite's arena: room above all that is alive together is no gap, however small.
TEST(BestFitBySize, LooksBelowWhatIsInTheWay) {
  Problem problem;
  const auto add = [&](const char* name, std::int64_t bytes, Lifetime lifetime) {
    problem.add({.name = name, .bytes = bytes, .lifetime = lifetime, .alignment = 1});
  };
  add("x", 100, {0, 10});
  add("y", 90, {0, 2});
  add("z", 80, {0, 10});
  add("w", 70, {0, 1});
  add("e", 60, {5, 6});
  EXPECT_EQ(solve(problem, {.strategy = "best_fit_by_size"}).offsets,
            (Offsets{0, 100, 190, 270, 100}));
}

TEST(HillClimbing, EndsWhereNoOrderHelps) {
  Problem problem;
  problem.add({.name = "f", .bytes = 10, .lifetime = {0, 2}, .alignment = 1, .offset = 50});
  problem.add({.name = "x", .bytes = 100, .lifetime = {0, 2}, .alignment = 1});
  for (std::int64_t i = 0; i < 300; ++i) {
    problem.add(
        {.name = "b" + std::to_string(i), .bytes = 3, .lifetime = {i, i + 2}, .alignment = 1});
  }
  EXPECT_EQ(solve(problem, {.strategy = "hill_climbing"}).peak, 160);
}

TEST(ByConflicts, CountsThemOnALineAndInAnOrder) {
  Problem line;
  line.add({.name = "a", .bytes = 9, .lifetime = {0, 2}});
  line.add({.name = "b", .bytes = 1, .lifetime = {1, 5}});
  line.add({.name = "c", .bytes = 2, .lifetime = {2, 3}});
  line.add({.name = "d", .bytes = 3, .lifetime = {4, 6}});
  EXPECT_EQ(by_conflicts(split_by_space(line)[0].instance), (ItemOrder{1, 0, 3, 2}));

  Precedence order(4);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      if (line.before(i, j)) order.set_before(i, j);
    }
  }
  line.set_precedence(order);
  EXPECT_EQ(by_conflicts(split_by_space(line)[0].instance), (ItemOrder{1, 0, 3, 2}));
}

TEST(InTime, FollowsAPrecedenceWithoutTimes) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = random_ordered(random, 20);
    const auto spaces = split_by_space(problem);
    const auto& items = spaces[0].instance.items;
    const ItemOrder order = in_time(spaces[0].instance);
    for (std::size_t p = 0; p < order.size(); ++p) {
      for (std::size_t q = p + 1; q < order.size(); ++q) {
        EXPECT_FALSE(problem.before(items[order[q]].buffer, items[order[p]].buffer));
      }
    }
  }
}

// What TVM's own test asks for: x is added to exp(y), then exp five times; all values have 10
// numbers but y and exp(y), which have one. Parameters are never given back.
TEST(StorageTokens, TvmsChainTakesFour) {
  Problem problem;
  const auto value = [&](const char* name, std::int64_t bytes, Lifetime lifetime) {
    problem.add({.name = name, .bytes = bytes, .lifetime = lifetime, .alignment = 1});
  };
  value("0 x", 40, {0, 9});
  value("1 y", 4, {0, 9});
  value("2 exp(y)", 4, {1, 3});
  value("3 add", 40, {2, 4});
  value("4 exp", 40, {3, 5});
  value("5 exp", 40, {4, 6});
  value("6 exp", 40, {5, 7});
  value("7 exp", 40, {6, 8});
  value("8 result", 40, {7, 9});
  const Instance instance = split_by_space(problem)[0].instance;
  const Slots slots = assign_slots(instance, 16);
  // The third token began with 4 bytes and grew: its size is that of its largest tenant, whatever
  // the first one asked for.
  EXPECT_EQ(slots.bytes, (Offsets{40, 4, 40, 40}));
  EXPECT_EQ(slots.of, (std::vector<std::size_t>{0, 1, 2, 3, 2, 3, 2, 3, 2}));
  EXPECT_EQ(solve(problem, {.strategy = "storage_tokens"}).peak, 124);
}

TEST(StorageTokens, LeaveWhatIsTooLargeOrTooSmall) {
  Problem problem;
  problem.add({.name = "a", .bytes = 1600, .lifetime = {0, 1}, .alignment = 1});
  problem.add({.name = "b", .bytes = 99, .lifetime = {1, 2}, .alignment = 1});
  problem.add({.name = "c", .bytes = 1600, .lifetime = {2, 3}, .alignment = 1});
  EXPECT_EQ(solve(problem, {.strategy = "storage_tokens"}).peak, 1699);
  EXPECT_EQ(solve(problem, {.strategy = "linear_scan"}).peak, 1600);
}

// Each number needs the two before it.
TEST(LinearScan, FibonacciTakesThreeSlotsHoweverLong) {
  Problem problem;
  for (std::int64_t i = 0; i < 100; ++i) {
    problem.add({.name = "f" + std::to_string(1000 + i), .bytes = 8, .lifetime = {i, i + 3}});
  }
  for (const char* strategy : {"linear_scan", "storage_tokens", "auto"}) {
    const Plan plan = solve(problem, {.strategy = strategy});
    EXPECT_EQ(std::set(plan.offsets.begin(), plan.offsets.end()).size(), 3u) << strategy;
  }
}

// Futhark's reuse/misc/limitation0: xs1–xs2–xs3–xs0 interfere along a path. Two blocks will do;
// who colours them as they come needs three.
TEST(Search, FindsTheTwoBlocksThatGreedyColouringMisses) {
  Problem problem;
  for (const char* name : {"xs0", "xs1", "xs2", "xs3"}) {
    problem.add({.name = name, .bytes = 8, .alignment = 8});
  }
  Precedence order(4);
  order.set_before(0, 1);
  order.set_before(0, 2);
  order.set_before(3, 1);
  problem.set_precedence(order);
  const Instance instance = split_by_space(problem)[0].instance;
  EXPECT_EQ(peak_of(instance, fit_in_order(instance, {0, 1, 2, 3}, Gap::lowest)), 24);
  const Plan plan = solve(problem);
  EXPECT_EQ(plan.peak, 16);
  EXPECT_TRUE(plan.optimal);
}

TEST(HillClimbing, ImprovesOnWhereItBegins) {
  std::mt19937 random(3);
  std::int64_t first = 0;
  std::int64_t climbed = 0;
  for (int round = 0; round < 5; ++round) {
    const Problem problem = random_program(random, 1);
    first += solve(problem, {.strategy = "first_fit_by_size"}).peak;
    const Options options{.strategy = "hill_climbing", .effort = Effort::fast};
    const Plan plan = solve(problem, options);
    EXPECT_EQ(plan.offsets, solve(problem, options).offsets);
    climbed += plan.peak;
  }
  EXPECT_LT(climbed, first);
}

/// Any problem there is: spaces, alignments, fixed places, partial orders.
Problem any_problem(std::mt19937& random) {
  if (below(random, 2) == 0) return random_ordered(random, 1 + below(random, 30));
  Problem problem = random_intervals(random, 1 + below(random, 30));
  const Plan plan = solve(problem, {.strategy = "bump"});
  Problem fixed;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    Buffer buffer = problem[i];
    if (below(random, 4) == 0) buffer.offset = plan.offsets[i];
    if (below(random, 4) == 0) buffer.space.index = 1;
    fixed.add(buffer);
  }
  return fixed;
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, MakesSoundPlansThatRepeatWhateverTheOrder) {
  std::mt19937 random(4);
  const bool quick =
      GetParam() != "auto" && GetParam() != "search" && GetParam() != "hill_climbing";
  for (int round = 0; round < (quick ? 200 : 20); ++round) {
    const Problem problem = any_problem(random);
    const Options options{.strategy = GetParam(), .effort = Effort::fast};
    const Plan plan = solve(problem, options);
    verify(problem, plan);
    if (problem.precedence() != nullptr) continue;
    std::vector<std::size_t> shuffled(problem.size());
    for (std::size_t i = 0; i < shuffled.size(); ++i) shuffled[i] = i;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    Problem other;
    for (const std::size_t i : shuffled) other.add(problem[i]);
    const Plan again = solve(other, options);
    EXPECT_EQ(again.peak, plan.peak);
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      EXPECT_EQ(again.offsets[i], plan.offsets[shuffled[i]]);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names{"auto"};
  for (const StrategyInfo& info : strategies()) names.emplace_back(info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Plan, EveryStrategy, ::testing::ValuesIn(names()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace arenite::plan
