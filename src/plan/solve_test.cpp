#include <arenite/plan/solve.hpp>

#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

Problem three_buffers() {
  Problem problem;
  problem.add({.name = "x", .bytes = 4096, .lifetime = {0, 3}});
  problem.add({.name = "y", .bytes = 8192, .lifetime = {1, 2}});
  problem.add({.name = "z", .bytes = 8192, .lifetime = {2, 4}});
  return problem;
}

TEST(Solve, ThreeBuffers) {
  const Problem problem = three_buffers();
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 12288);
  EXPECT_EQ(plan.max_live, 12288);
  EXPECT_EQ(plan.lower_bound, 12288);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.strategy, "first_fit_by_size");
  EXPECT_EQ(plan.reuse, (std::vector<Reuse>{{1, 2}}));
  EXPECT_TRUE(share_bytes(plan, 1, 2));
  EXPECT_FALSE(share_bytes(plan, 0, 2));
}

TEST(Solve, NothingAndZeroBytes) {
  const Problem empty;
  EXPECT_TRUE(solve(empty).optimal);
  EXPECT_EQ(solve(empty).peak, 0);
  verify(empty, solve(empty));

  Problem zeroes;
  zeroes.add({.name = "a", .bytes = 0, .lifetime = {0, 1}});
  zeroes.add({.name = "b", .bytes = 0, .lifetime = {0, 1}, .offset = 512});
  const Plan plan = solve(zeroes);
  verify(zeroes, plan);
  EXPECT_EQ(plan.peak, 0);
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{0, 512}));
  EXPECT_EQ(plan.spaces.size(), 1u);
}

TEST(Solve, SpacesAreIndependent) {
  Problem problem;
  const Space gpu{.device = DeviceKind::cuda, .memory = MemoryKind::device};
  problem.add({.name = "a", .bytes = 1000, .lifetime = {0, 1}, .space = gpu});
  problem.add({.name = "b", .bytes = 500, .lifetime = {0, 1}});
  problem.add({.name = "c", .bytes = 700, .lifetime = {1, 2}});
  const Plan plan = solve(problem);
  verify(problem, plan);
  ASSERT_EQ(plan.spaces.size(), 2u);
  EXPECT_EQ(plan.spaces[0].space, Space{});
  EXPECT_EQ(plan.spaces[0].peak, 700);
  EXPECT_EQ(plan.spaces[1].peak, 1000);
  EXPECT_EQ(plan.peak, 1700);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.reuse, (std::vector<Reuse>{{1, 2}}));  // never across spaces
}

TEST(Solve, KeepsFixedOffsetsAndFillsAroundThem) {
  Problem problem;
  problem.add({.name = "fixed", .bytes = 256, .lifetime = {0, 4}, .offset = 512});
  problem.add({.name = "below", .bytes = 500, .lifetime = {0, 4}});
  problem.add({.name = "above", .bytes = 600, .lifetime = {0, 4}});
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{512, 0, 768}));
  EXPECT_EQ(solve(problem, {.strategy = "bump"}).offsets,
            (std::vector<std::int64_t>{512, 1536, 768}));
}

TEST(Solve, BumpNeverReuses) {
  const Problem problem = three_buffers();
  const Plan plan = solve(problem, {.strategy = "bump"});
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 4096 + 8192 + 8192);
  EXPECT_FALSE(plan.optimal);
  EXPECT_TRUE(plan.reuse.empty());
}

TEST(Solve, StrategiesHaveNames) {
  const Problem problem = three_buffers();
  for (const StrategyInfo& info : strategies()) {
    const Plan plan = solve(problem, {.strategy = std::string(info.name), .effort = Effort::fast});
    verify(problem, plan);
    EXPECT_EQ(plan.strategy, info.name);
  }
  EXPECT_ERROR("strategy 'magic'; expected one of auto, first_fit_by_size",
               solve(problem, {.strategy = "magic"}));
}

TEST(Solve, CapacityIsProvedInfeasibleOrNotFound) {
  Problem problem = three_buffers();
  EXPECT_EQ(solve(problem, {.capacity = 12288}).peak, 12288);
  EXPECT_ERROR(
      "space cpu:0/host: infeasible: proved: at least 12,288 bytes; expected at most the "
      "capacity of 12,287 bytes (hint: alive together: 'y' (8,192 bytes, lifetime [1, 2))"
      ", 'x' (4,096 bytes, lifetime [0, 3)))",
      solve(problem, {.capacity = 12287}));
  EXPECT_ERROR("not found within budget: the best plan takes 20,480",
               solve(problem, {.strategy = "bump", .capacity = 12288}));

  Problem small;
  small.add({.name = "a", .bytes = 200, .lifetime = {0, 1}, .space = {.capacity = 100}});
  EXPECT_ERROR("the capacity of 100", solve(small));
}

TEST(Solve, DoesNotDependOnTheOrderOfAdd) {
  std::mt19937 random(3);
  for (int round = 0; round < fewer_where_slow(40); ++round) {
    const Problem first = random_intervals(random, 12);
    std::vector<Buffer> buffers = first.buffers();
    for (std::size_t i = buffers.size(); i > 1; --i) {
      std::swap(buffers[i - 1], buffers[random() % i]);
    }
    Problem second;
    for (const Buffer& buffer : buffers) second.add(buffer);

    const Plan a = solve(first, {.effort = Effort::fast});
    const Plan b = solve(second, {.effort = Effort::fast});
    EXPECT_EQ(a.strategy, b.strategy);
    std::map<std::string, std::int64_t> offsets;
    for (std::size_t i = 0; i < 12; ++i) offsets[a.buffers[i].name] = a.offsets[i];
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(b.offsets[i], offsets[b.buffers[i].name]);
  }
}

TEST(Solve, AChainNeedsTwoSlots) {
  Problem problem;
  for (std::int64_t i = 0; i < 100; ++i) {
    problem.add({.name = "f" + std::to_string(i), .bytes = 40, .lifetime = {i, i + 2}});
  }
  const Plan plan = solve(problem, {.effort = Effort::fast});
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 256 + 40);
  EXPECT_TRUE(plan.optimal);
}

// Of four equal buffers each conflicts with its neighbours in xs1 - xs2 - xs3 - xs0 only. Whoever
// gives them slots by name puts xs1 where xs0 is, and takes three (Futhark's memory-block tests,
// limitation0).
TEST(Solve, APathTakesTwoSlotsWhateverItsNames) {
  Problem problem;
  for (const auto& [name, lifetime] : std::vector<std::pair<const char*, Lifetime>>{
           {"xs0", {5, 7}}, {"xs1", {0, 2}}, {"xs2", {1, 4}}, {"xs3", {3, 6}}}) {
    problem.add({.name = name, .bytes = 256, .lifetime = lifetime});
  }
  for (const Effort effort : {Effort::fast, Effort::normal}) {
    const Plan plan = solve(problem, {.effort = effort});
    verify(problem, plan);
    EXPECT_EQ(plan.peak, 512);
    EXPECT_TRUE(plan.optimal);
  }
}

TEST(Solve, ADiamondSharesNothingAcrossItsBranches) {
  // a -> (b, c) -> d as tasks; a value each, read by the next. The branches run in parallel.
  Problem problem;
  for (const char* name : {"a", "b", "c", "d"}) problem.add({.name = name, .bytes = 256});
  Precedence order(4);
  order.set_before(0, 3);
  problem.set_precedence(order);
  const Plan plan = solve(problem, {.effort = Effort::fast});
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 768);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.reuse, (std::vector<Reuse>{{0, 3}}));
  EXPECT_LE(plan.buffers[0].lifetime.end, plan.buffers[3].lifetime.begin);
}

TEST(Solve, TenThousandBuffers) {
  std::mt19937 random(1);
  Problem problem;
  for (std::int64_t i = 0; i < 10000; ++i) {
    problem.add({.name = std::to_string(i),
                 .bytes = below(random, 1 << 20),
                 .lifetime = {i, i + 1 + below(random, 60)}});
  }
  const Plan plan = solve(problem, {.effort = Effort::fast});
  verify(problem, plan);
  EXPECT_LE(static_cast<double>(plan.peak), 1.12 * static_cast<double>(plan.lower_bound));
}

// What Plan::reuse promises: closed by transitivity, its pairs are all pairs that share bytes.
TEST(Solve, ReuseImpliesEveryPairThatSharesBytes) {
  std::mt19937 random(11);
  for (int round = 0; round < fewer_where_slow(100); ++round) {
    const Problem problem =
        round % 2 == 0 ? random_intervals(random, 12) : random_ordered(random, 12);
    const Plan plan = solve(problem, {.effort = Effort::fast});
    Precedence implied(problem.size());
    for (const Reuse& reuse : plan.reuse) {
      EXPECT_TRUE(problem.before(reuse.previous, reuse.next));
      EXPECT_TRUE(share_bytes(plan, reuse.previous, reuse.next));
      implied.set_before(reuse.previous, reuse.next);
    }
    implied.close();
    for (std::size_t i = 0; i < problem.size(); ++i) {
      for (std::size_t j = 0; j < problem.size(); ++j) {
        if (i != j && share_bytes(plan, i, j) && problem.before(i, j)) {
          EXPECT_TRUE(implied.before(i, j));
        }
      }
    }
  }
}

}  // namespace
}  // namespace arenite::plan
