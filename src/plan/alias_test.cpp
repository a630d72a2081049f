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

/// Members of different groups never meet, judged piece by piece: those of a loner, or all of a
/// group's at once.
void check_apart(const Problem& problem, const Plan& plan) {
  const std::size_t n = problem.size();
  const auto group = [&](std::size_t i) {
    return problem[i].alias.empty() ? "#" + problem[i].name : problem[i].alias;
  };
  struct Piece {
    Lifetime time;
    std::size_t number;
  };
  const auto parts = [&](std::size_t i) {
    std::size_t members = 0;
    for (std::size_t k = 0; k < n; ++k) members += group(k) == group(i);
    const bool alone = members == 1;
    std::vector<std::vector<Piece>> result(alone ? problem[i].gaps.size() + 1 : 1);
    for (std::size_t k = 0; k < n; ++k) {
      if (group(k) != group(i)) continue;
      std::size_t piece = 0;
      for (const Lifetime& time : pieces(problem[k])) {
        result[alone ? piece : 0].push_back({time, problem.first_piece(k) + piece});
        ++piece;
      }
    }
    return result;
  };
  const auto before = [&](const std::vector<Piece>& a, const std::vector<Piece>& b) {
    for (const Piece& p : a) {
      for (const Piece& q : b) {
        const bool good = problem.precedence() != nullptr
                              ? problem.precedence()->before(p.number, q.number)
                              : p.time.end <= q.time.begin;
        if (!good) return false;
      }
    }
    return true;
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (group(i) == group(j) || !share_bytes(plan, i, j)) continue;
      for (const auto& a : parts(i)) {
        for (const auto& b : parts(j)) EXPECT_TRUE(before(a, b) || before(b, a));
      }
    }
  }
}

TEST(Alias, RandomGroupsOnALineAndInAnOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < fewer_where_slow(300); ++round) {
    const std::int64_t n = 1 + below(random, 12);
    const Problem plain = round % 4 == 0   ? random_intervals(random, n)
                          : round % 4 == 1 ? random_ordered(random, n)
                          : round % 4 == 2 ? random_gaps(random, n)
                                           : random_gaps_ordered(random, n);
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
