#include <arenite/plan/verify.hpp>

#include <arenite/plan/solve.hpp>

#include <gtest/gtest.h>

#include <algorithm>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

class Verify : public ::testing::Test {
 protected:
  Verify() {
    problem.add({.name = "x", .bytes = 4096, .lifetime = {0, 3}});
    problem.add({.name = "y", .bytes = 8192, .lifetime = {1, 2}});
    problem.add({.name = "z", .bytes = 8192, .lifetime = {2, 4}});
    plan = solve(problem);
  }

  Problem problem;
  Plan plan;
};

TEST_F(Verify, AcceptsASoundPlanInAnyOrder) {
  verify(problem, plan);
  std::swap(plan.buffers[0], plan.buffers[2]);
  std::swap(plan.offsets[0], plan.offsets[2]);
  plan.reuse = find_reuse(plan);
  verify(problem, plan);
}

TEST_F(Verify, NamesBothBuffersOfAnOverlap) {
  plan.offsets[0] = 4096;
  EXPECT_ERROR(
      "plan::verify, space cpu:0/host: 'y' (8,192 bytes, lifetime [1, 2)) at offset 0 and "
      "'x' (4,096 bytes, lifetime [0, 3)) at offset 4,096 overlap and may be alive "
      "together",
      verify(problem, plan));
}

TEST_F(Verify, ChecksEveryPlace) {
  plan.offsets[0] = -256;
  EXPECT_ERROR("at offset -256; expected an offset of at least 0", verify(problem, plan));
  plan.offsets[0] = 8193;
  EXPECT_ERROR("expected a multiple of its alignment 256", verify(problem, plan));
  plan.offsets[0] = INT64_MAX - 255;
  EXPECT_ERROR("expected an offset of at most 2^61", verify(problem, plan));
}

TEST_F(Verify, ChecksEveryClaim) {
  const Plan good = plan;
  const auto expect = [&](const char* words) {
    EXPECT_ERROR(words, verify(problem, plan));
    plan = good;
  };
  plan.spaces[0].peak -= 256;
  expect("a reported peak of 12,032; expected 12,288");
  plan.spaces[0].max_live -= 1;
  expect("a reported max_live of 12,287");
  plan.spaces[0].lower_bound -= 1;
  expect("a claimed lower bound of 12,287");
  plan.spaces[0].lower_bound += 1;
  expect("a claimed lower bound of 12,289");
  plan.spaces[0].optimal = false;
  expect("a plan called not optimal");
  plan.peak += 1;
  expect("totals of peak 12,289");
  plan.optimal = false;
  expect("12,288, not optimal; expected");
  plan.spaces.clear();
  expect("a plan of 0 spaces; expected 1");
  plan.spaces[0].space.index = 1;
  expect("space cpu:1/host");
  plan.reuse.clear();
  expect("reuse of bytes: no further pair; expected 'z' after 'y'");
  plan.reuse[0].previous = 99;
  expect("an index out of range");
  plan.buffers.pop_back();
  expect("a plan of 2 buffers and 3 offsets");
  plan.buffers[0].name = "w";
  expect("a plan without buffer 'x'");
  plan.buffers[0].bytes = 1;
  expect("a plan for 'x' (1 bytes");
  plan.buffers[0].lifetime.end = 2;
  expect("lifetime [0, 2)");

  // A bound raised to a worse plan's peak does not make it optimal.
  plan = solve(problem, {.strategy = "bump"});
  plan.lower_bound = plan.spaces[0].lower_bound = plan.peak;
  plan.optimal = plan.spaces[0].optimal = true;
  expect("which can be confirmed");
}

TEST_F(Verify, ChecksFixedOffsetsAndCapacity) {
  Problem fixed;
  fixed.add({.name = "a", .bytes = 256, .lifetime = {0, 1}, .offset = 256});
  Plan moved = solve(fixed);
  moved.offsets[0] = 0;
  EXPECT_ERROR("expected its fixed offset 256", verify(fixed, moved));

  Problem roomy;
  Problem tight;
  for (Problem* p : {&roomy, &tight}) {
    for (const char* name : {"a", "b"}) {
      p->add({.name = name,
              .bytes = 256,
              .lifetime = {name[0] - 'a', name[0] - 'a' + 1},
              .space = {.capacity = p == &roomy ? 1024 : 256}});
    }
  }
  Plan bumped = solve(roomy, {.strategy = "bump"});
  for (Buffer& buffer : bumped.buffers) buffer.space.capacity = 256;
  bumped.spaces[0].space.capacity = 256;
  EXPECT_ERROR("a peak of 512; expected at most the capacity of 256", verify(tight, bumped));
}

TEST_F(Verify, ChecksLifetimesAgainstAPrecedence) {
  Problem ordered;
  ordered.add({.name = "a", .bytes = 256});
  ordered.add({.name = "b", .bytes = 256});
  Precedence order(2);
  order.set_before(0, 1);
  ordered.set_precedence(order);
  Plan sound = solve(ordered);
  verify(ordered, sound);
  std::swap(sound.buffers[0].lifetime, sound.buffers[1].lifetime);
  EXPECT_ERROR("lifetimes that follow the precedence", verify(ordered, sound));
}

TEST(VerifySpaces, RefusesPeaksWhoseSumPassesTheLimit) {
  Problem problem;
  for (int i = 0; i < 4; ++i) {
    problem.add({.name = std::string(1, static_cast<char>('a' + i)),
                 .bytes = 256,
                 .lifetime = {0, 1},
                 .space = {.index = i}});
  }
  Plan plan = solve(problem, {.effort = Effort::fast});
  // Four times 2^61 is one more than an offset can be.
  plan.offsets.assign(4, 2 * Problem::limit - 256);
  for (SpacePlan& space : plan.spaces) {
    space.peak = 2 * Problem::limit;
    space.optimal = false;
  }
  EXPECT_ERROR("plan::verify: spaces whose peaks pass 2^61 bytes in sum; expected a sum of at most",
               verify(problem, plan));
}

/// Straight from the definition, for plans whose offsets were moved.
bool sound_places(const Problem& problem, const Plan& plan) {
  for (std::size_t i = 0; i < problem.size(); ++i) {
    if (plan.offsets[i] < 0 || plan.offsets[i] % problem[i].alignment != 0) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (problem.conflict(i, j) && share_bytes(plan, i, j)) return false;
    }
  }
  return true;
}

TEST(VerifyProperty, RefusesExactlyTheUnsoundOfMovedPlans) {
  std::mt19937 random(9);
  int refused = 0;
  int accepted = 0;
  for (int round = 0; round < fewer_where_slow(6000); ++round) {
    const std::int64_t n = 2 + below(random, 7);
    const Problem problem = round % 4 == 0   ? random_intervals(random, n)
                            : round % 4 == 1 ? random_ordered(random, n)
                            : round % 4 == 2 ? random_gaps(random, n)
                                             : random_gaps_ordered(random, n);
    Plan plan = solve(problem, {.effort = Effort::fast});
    const std::size_t moved = random() % problem.size();
    plan.offsets[moved] += below(random, 13) - 6;
    if (!sound_places(problem, plan)) {
      EXPECT_THROW(verify(problem, plan), Error);
      ++refused;
      continue;
    }
    // Legal still: with honest figures it must pass.
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < problem.size(); ++i) {
      if (problem[i].bytes > 0) peak = std::max(peak, plan.offsets[i] + problem[i].bytes);
    }
    const bool changed = peak != plan.peak;
    if (changed) {
      EXPECT_THROW(verify(problem, plan), Error);
    }
    plan.peak = plan.spaces[0].peak = peak;
    plan.optimal = plan.spaces[0].optimal = peak == plan.lower_bound;
    plan.reuse = find_reuse(plan);
    EXPECT_NO_THROW(verify(problem, plan));
    ++accepted;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, fewer_where_slow(500));
}

}  // namespace
}  // namespace arenite::plan
