// Buffers whose bytes hold nothing for a while.
#include <arenite/plan/csv.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/in_flight.hpp>
#include <arenite/plan/json.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include "src/plan/piece_reuse.hpp"
#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

/// x leaves its bytes to y from 2 to 4.
Problem turns() {
  Problem problem;
  problem.add({.name = "x", .bytes = 256, .lifetime = {0, 6}, .gaps = {{2, 4}}});
  problem.add({.name = "y", .bytes = 256, .lifetime = {2, 4}});
  return problem;
}

TEST(Gaps, LeaveTheBytesToOthers) {
  const Problem problem = turns();
  EXPECT_EQ(problem.piece_count(), 3u);
  EXPECT_EQ(pieces(problem[0]), (std::vector<Lifetime>{{0, 2}, {4, 6}}));
  EXPECT_FALSE(problem.conflict(0, 1));
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 256);
  EXPECT_TRUE(plan.optimal);
  // Both ways: x before y, and y before x.
  EXPECT_EQ(plan.reuse, (std::vector<Reuse>{{1, 0}, {0, 1}}));
  EXPECT_EQ(find_piece_reuse(plan), (std::vector<PieceReuse>{{{0, 1}, {1, 0}}, {{1, 0}, {0, 0}}}));
}

TEST(Gaps, EndWhereTheBytesAreNeededAgain) {
  Problem problem;
  problem.add({.name = "x", .bytes = 256, .lifetime = {0, 6}, .gaps = {{2, 4}}});
  problem.add({.name = "early", .bytes = 256, .lifetime = {1, 4}});
  problem.add({.name = "late", .bytes = 256, .lifetime = {3, 5}});
  EXPECT_TRUE(problem.conflict(0, 1));
  EXPECT_TRUE(problem.conflict(2, 0));
  Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 768);
  EXPECT_EQ(plan.max_live, 512);  // no moment needs all three: it takes a search to know
  EXPECT_EQ(plan.lower_bound, 768);
  EXPECT_TRUE(plan.optimal);
  plan.offsets[1] = plan.offsets[0];
  plan.reuse = find_reuse(plan);
  EXPECT_ERROR("'x' (256 bytes, lifetime [0, 6) without [2, 4)) at offset", verify(problem, plan));
}

TEST(Gaps, OfTwoBuffersMayInterlock) {
  Problem problem;
  problem.add({.name = "x", .bytes = 256, .lifetime = {0, 7}, .gaps = {{1, 2}, {3, 6}}});
  problem.add({.name = "y", .bytes = 256, .lifetime = {1, 5}, .gaps = {{2, 3}}});
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 256);
  EXPECT_EQ(plan.reuse, (std::vector<Reuse>{{1, 0}, {0, 1}}));
}

TEST(Gaps, AreAnOrderOfPieces) {
  Problem problem;
  problem.add({.name = "x", .bytes = 256, .lifetime = {0, 6}, .gaps = {{2, 4}}});
  problem.add({.name = "y", .bytes = 256, .lifetime = {2, 4}});
  problem.add({.name = "z", .bytes = 256, .lifetime = {2, 4}});
  Precedence order(problem.piece_count());
  problem.set_precedence(order);
  EXPECT_ERROR("'x' in [0, 2) not before 'x' in [4, 6); expected a buffer's pieces in their order",
               problem.validate());
  order.set_before(0, 1);
  order.set_before(0, 2);
  order.set_before(2, 1);
  problem.set_precedence(order);  // y runs in the gap, z beside all
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_EQ(plan.peak, 512);
  EXPECT_EQ(plan.lower_bound, 512);
  EXPECT_TRUE(plan.optimal);
  EXPECT_TRUE(share_bytes(plan, 0, 1));

  problem.set_precedence(Precedence(3));
  EXPECT_ERROR("an order of 3 pieces; expected 4, the number of the buffers' pieces",
               problem.validate());
}

TEST(Gaps, AreKeptFromViews) {
  Problem problem = turns();
  problem.add({.name = "view", .bytes = 256, .lifetime = {0, 1}, .alias = "v"});
  problem.add({.name = "whole", .bytes = 256, .lifetime = {3, 7}, .gaps = {{4, 6}}, .alias = "v"});
  problem.add({.name = "inside", .bytes = 256, .lifetime = {4, 6}});
  const Plan plan = solve(problem);
  verify(problem, plan);
  EXPECT_FALSE(share_bytes(plan, 3, 4));  // the bytes stay for the group
}

TEST(Gaps, AreWithinTheLifetimeAndApart) {
  const auto error = [](std::vector<Lifetime> gaps) {
    Problem problem;
    return error_of([&] {
      problem.add({.name = "x", .bytes = 1, .lifetime = {0, 9}, .gaps = std::move(gaps)});
    });
  };
  const std::string expected =
      " in the lifetime [0, 9); expected gaps that are not empty, ascending, apart and none at "
      "either end";
  EXPECT_EQ(error({{3, 3}}), "buffer 'x': the gap [3, 3)" + expected);
  EXPECT_EQ(error({{0, 3}}), "buffer 'x': the gap [0, 3)" + expected);
  EXPECT_EQ(error({{3, 9}}), "buffer 'x': the gap [3, 9)" + expected);
  EXPECT_EQ(error({{3, 4}, {4, 5}}), "buffer 'x': the gap [4, 5)" + expected);
  EXPECT_EQ(error({{5, 6}, {2, 3}}), "buffer 'x': the gap [2, 3)" + expected);
  EXPECT_EQ(error({{2, 3}, {5, 6}}), "(no error)");
}

TEST(Gaps, ShrinkWithTasksInFlight) {
  const Problem longer = with_tasks_in_flight(turns(), 2);
  EXPECT_EQ(longer[0].gaps, (std::vector<Lifetime>{{3, 4}}));
  EXPECT_EQ(longer[0].lifetime, (Lifetime{0, 7}));
  EXPECT_TRUE(with_tasks_in_flight(turns(), 3)[0].gaps.empty());
  EXPECT_EQ(solve(with_tasks_in_flight(turns(), 3)).peak, 512);
}

TEST(Gaps, TravelThroughTables) {
  const std::string text = "id,lower,upper,size,gaps\nx,-9,12,256,-5--3  4-6\ny,-5,-3,256,\n";
  const Problem problem = read_csv(text, "t");
  EXPECT_EQ(problem[0].gaps, (std::vector<Lifetime>{{-5, -3}, {4, 6}}));
  EXPECT_TRUE(problem[1].gaps.empty());
  // Inclusive ends make inclusive gaps.
  EXPECT_EQ(read_csv("id,lower,end,size,gaps\nx,0,9,1,4-5\n", "t")[0].gaps,
            (std::vector<Lifetime>{{4, 6}}));
  const Plan plan = solve(problem);
  const std::string table = write_csv(plan);
  EXPECT_EQ(table,
            "id,lower,upper,size,alignment,space,gaps,offset\n"
            "x,-9,12,256,1,cpu:0/host,-5--3 4-6,0\ny,-5,-3,256,1,cpu:0/host,,0\n");
  EXPECT_EQ(read_csv(table, "t")[0].gaps, problem[0].gaps);
  EXPECT_EQ(write_csv(text, "t", plan),
            "id,lower,upper,size,gaps,offset\nx,-9,12,256,-5--3  4-6,0\ny,-5,-3,256,,0\n");

  const auto error = [](const std::string& gaps) {
    return error_of([&] { read_csv("id,lower,upper,size,gaps\nx,0,9,1," + gaps + "\n", "t"); });
  };
  for (const char* gaps : {"4", "4-", "-", "4-5,", "4-5@0:3", "4-5;6-7", "a-b", "4 - 5",
                           "1152921504606846976-1152921504606846977"}) {
    EXPECT_NE(error(gaps).find("t, line 2, column "), std::string::npos) << gaps;
  }
  EXPECT_EQ(error("4-5@0:3"),
            "t, line 2, column 9: gaps '4-5@0:3'; expected pairs of times such as '4-6 9-12', "
            "within ±2^60");
  EXPECT_EQ(error("7-12"),
            "t, line 2, column 1: the gap [7, 12) in the lifetime [0, 9); expected gaps that are "
            "not empty, ascending, apart and none at either end");
}

TEST(Gaps, TravelThroughJson) {
  const Plan plan = solve(turns());
  const std::string text = to_json(plan);
  EXPECT_NE(text.find("\"gaps\":[[2,4]]"), std::string::npos) << text;
  EXPECT_EQ(from_json(text, "t"), plan);
  std::string wrong = text;
  wrong.replace(wrong.find("[[2,4]]"), 7, "[[2]]");
  EXPECT_ERROR("1 entries; expected two", from_json(wrong, "t"));
  // A plan with other gaps is a plan of another problem.
  Plan other = plan;
  other.buffers[0].gaps = {{2, 5}};
  EXPECT_ERROR("without [2, 5)", verify(turns(), other));
}

TEST(Gaps, AreOpenInPictures) {
  const Plan plan = solve(turns());
  const std::string text = draw_text(plan);
  EXPECT_NE(text.find("[0, 6) without [2, 4)"), std::string::npos) << text;
  EXPECT_NE(text.find("aabbb"), std::string::npos) << text;  // y, within x's row
  const std::string svg = to_svg(plan);
  std::size_t boxes = 0;
  for (std::size_t at = 0; (at = svg.find("<title>", at)) != std::string::npos; ++at) ++boxes;
  EXPECT_EQ(boxes, 3u);
  EXPECT_NE(svg.find("class=\"gap\""), std::string::npos);
  Plan broken = plan;
  broken.buffers[0].gaps = {{5, 9}};
  EXPECT_ERROR("expected gaps within its lifetime, ascending and apart", to_svg(broken));
}

TEST(Gaps, MakeNoDifferenceToTheOrderOfRows) {
  std::mt19937 random(8);
  for (int round = 0; round < 50; ++round) {
    const Problem first = random_gaps(random, 12);
    Problem second;
    for (std::size_t i = first.size(); i-- > 0;) second.add(first[i]);
    const Plan a = solve(first, {.effort = Effort::fast});
    const Plan b = solve(second, {.effort = Effort::fast});
    verify(first, a);
    EXPECT_EQ(a.strategy, b.strategy);
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(a.offsets[i], b.offsets[first.size() - 1 - i]);
    }
  }
}

}  // namespace
}  // namespace arenite::plan
