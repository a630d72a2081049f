#include <arenite/plan/csv.hpp>
#include <arenite/plan/json.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

/// x is read through a view of its lower half after x itself is done with.
Problem viewed() {
  Problem problem;
  problem.add({.name = "x", .bytes = 100, .lifetime = {0, 2}, .alignment = 1, .alias = "x"});
  problem.add({.name = "view", .bytes = 50, .lifetime = {4, 6}, .alignment = 2, .alias = "x"});
  problem.add({.name = "between", .bytes = 80, .lifetime = {2, 4}, .alignment = 1});
  problem.add({.name = "after", .bytes = 90, .lifetime = {6, 7}, .alignment = 1});
  return problem;
}

TEST(Alias, KeepsTheBytesUntilTheLastView) {
  const Problem problem = viewed();
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 180);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_FALSE(share_bytes(plan, 0, 2));
  // "view" comes first by name, and stands for both.
  EXPECT_EQ(plan.reuse, (std::vector<Reuse>{{1, 3}}));
}

TEST(Alias, VerifierSeesWhatSolversMustNotDo) {
  const Problem problem = viewed();
  Plan apart = solve(problem);
  apart.offsets[1] += 2;
  EXPECT_ERROR("expected one offset for all with the alias 'x'", verify(problem, apart));

  // Apart from aliases "between" could have x's bytes.
  Problem without;
  for (Buffer buffer : problem.buffers()) {
    buffer.alias.clear();
    without.add(buffer);
  }
  Plan wrong = solve(without);
  ASSERT_EQ(wrong.peak, 100);
  wrong.offsets[1] = wrong.offsets[0];
  for (std::size_t i = 0; i < wrong.buffers.size(); ++i) wrong.buffers[i] = problem[i];
  wrong.reuse = find_reuse(wrong);
  EXPECT_ERROR("overlap", verify(problem, wrong));
  EXPECT_ERROR("with the alias 'x', as the problem has it", verify(problem, solve(without)));
}

TEST(Alias, OnePlaceInOneSpace) {
  Problem spaces = viewed();
  spaces.add({.name = "far", .bytes = 1, .lifetime = {0, 1}, .space = {.index = 1}, .alias = "x"});
  EXPECT_ERROR("one space for all with the alias 'x'", solve(spaces));

  Problem places = viewed();
  places.add(
      {.name = "p", .bytes = 1, .lifetime = {0, 1}, .alignment = 1, .offset = 4, .alias = "x"});
  EXPECT_EQ(solve(places).offsets[0], 4);
  places.add(
      {.name = "q", .bytes = 1, .lifetime = {0, 1}, .alignment = 1, .offset = 8, .alias = "x"});
  EXPECT_ERROR("one place for all with the alias 'x'", solve(places));
}

TEST(Alias, TravelsThroughFiles) {
  const Problem problem = viewed();
  const Plan plan = solve(problem);
  const std::string table = write_csv(plan);
  EXPECT_NE(table.find("space,alias,offset\nx,0,2,100,1,cpu:0/host,x,"), std::string::npos)
      << table;
  const Problem again = read_csv(table, "again");
  EXPECT_EQ(again[1].alias, "x");
  EXPECT_EQ(again[2].alias, "");
  verify(again, plan);
}

/// Members of different groups never meet, judged buffer by buffer.
void check_apart(const Problem& problem, const Plan& plan) {
  const std::size_t n = problem.size();
  const auto group = [&](std::size_t i) {
    return problem[i].alias.empty() ? "#" + problem[i].name : problem[i].alias;
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (group(i) == group(j) || !share_bytes(plan, i, j)) continue;
      // All of one group before all of the other.
      const auto all_before = [&](std::size_t a, std::size_t b) {
        for (std::size_t k = 0; k < n; ++k) {
          for (std::size_t l = 0; l < n; ++l) {
            if (group(k) == group(a) && group(l) == group(b) && !problem.before(k, l)) return false;
          }
        }
        return true;
      };
      EXPECT_TRUE(all_before(i, j) || all_before(j, i));
    }
  }
}

TEST(Alias, RandomGroupsOnALineAndInAnOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Problem plain = round % 2 == 0 ? random_intervals(random, 1 + below(random, 12))
                                         : random_ordered(random, 1 + below(random, 12));
    Problem problem;
    for (Buffer buffer : plain.buffers()) {
      if (below(random, 2) == 0)
        buffer.alias = std::string(1, static_cast<char>('a' + below(random, 3)));
      problem.add(buffer);
    }
    if (plain.precedence() != nullptr) problem.set_precedence(*plain.precedence());
    const Plan plan = solve(problem, {.effort = Effort::fast});
    verify(problem, plan);
    check_apart(problem, plan);
  }
}

}  // namespace
}  // namespace arenite::plan
