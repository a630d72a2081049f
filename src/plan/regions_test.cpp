// Plans of graphs with blocks: sound in a replay, and as small as the rules for blocks allow.
#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/graph/random_regions.hpp"
#include "src/plan/region_replay.hpp"

namespace arenite::plan {
namespace {

using graph::Graph;
using graph::Schedule;
using graph::testing::error_of;
using graph::testing::table;
using testing::RegionReplay;
using testing::shuffled;

struct Planned {
  Graph graph;
  Schedule schedule;
  StepPlan plan;

  explicit Planned(Graph g, const StepOptions& options = {})
      : graph(std::move(g)), schedule(graph::coarsen(graph)) {
    StateLayout state;
    plan = plan_step(graph, schedule, state, options);
  }
  void verify() const { verify_step(graph, schedule, plan); }
};

Graph read(const std::string& rest) {
  Graph graph = graph::parse(
      "$1 = InputTensor(c, int64, [1]);\n$2 = InputTensor(x, float32, [64]);\n" + rest, table());
  return graph;
}

/// Of the step's block. `share`: after in_place, as programs are.
std::int64_t rows(Graph graph, bool share) {
  if (share) {
    graph::in_place(graph);
  } else {
    graph::join_handovers(graph);
  }
  const Planned planned(std::move(graph));
  planned.verify();
  EXPECT_TRUE(planned.plan.optimal);
  return planned.plan.transient_bytes() / 256;
}

std::int64_t rows(const std::string& script, bool share = true) {
  return rows(read(script), share);
}

/// The plan's outputs are those of a run with bytes of their own for all.
void expect_sound(const Graph& plain, unsigned run) {
  Graph shared = plain;
  graph::in_place(shared);
  const Planned planned(shared);
  const Schedule schedule = graph::coarsen(plain);
  EXPECT_EQ(RegionReplay(planned.graph, planned.schedule, &planned.plan, run).run(),
            RegionReplay(plain, schedule, nullptr, run).run())
      << graph::print(shared);
}

/// Pairs that share bytes, one in a gap of the other.
std::size_t turns_taken(const Plan& plan) {
  std::size_t turns = 0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime &a = plan.buffers[i].lifetime, &b = plan.buffers[j].lifetime;
      turns += share_bytes(plan, i, j) && a.begin < b.end && b.begin < a.end;
    }
  }
  return turns;
}

TEST(RegionPlans, ReplayAsWithBytesOfTheirOwn) {
  std::size_t ops = 0, turns = 0;
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(200U); ++seed) {
    const Graph plain = graph::testing::RandomRegions(seed).make();
    Graph joined = plain, shared = plain;
    graph::join_handovers(joined);
    graph::in_place(shared);
    const Schedule schedule = graph::coarsen(plain);
    for (const Graph* graph : {&joined, &shared}) {
      const Planned planned(*graph);
      ASSERT_NO_THROW(planned.verify()) << "seed " << seed << "\n" << graph::print(*graph);
      for (const Plan& packing : planned.plan.packings) turns += turns_taken(packing);
      for (unsigned run = 0; run < 4; ++run) {
        RegionReplay expected(plain, schedule, nullptr, run);
        RegionReplay seen(planned.graph, planned.schedule, &planned.plan, run);
        ASSERT_EQ(seen.run(), expected.run()) << "seed " << seed << "\n" << graph::print(*graph);
        ops += seen.ops_run();
      }
    }
  }
  EXPECT_GT(ops, 5000u);
  EXPECT_GT(turns, 1000u);
}

Schedule one_op_a_task(const Graph& graph) {
  graph::TargetProfile target;
  target.task_microseconds = target.phase_microseconds = 0;
  return graph::coarsen(graph, target);
}

/// Each op a task, on lanes drawn: readers run beside blocks that leave a value dead.
TEST(RegionPlans, ReplayInAnyOrderOfTheirTasks) {
  std::mt19937 random(5);
  std::size_t turns = 0, beside = 0;
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(200U); ++seed) {
    Graph graph = graph::testing::RandomRegions(seed).make();
    const auto lane = [&](const auto& self, graph::OpId id, int number) -> void {
      graph[id].lane = number;
      const std::vector<graph::RegionId> regions = graph[id].regions;
      for (graph::RegionId region : regions) {
        for (graph::OpId inner : graph[region].ops) self(self, inner, number);
      }
    };
    for (graph::OpId id : graph[Graph::body].ops)
      lane(lane, id, static_cast<int>(random() % 4) - 1);
    const Graph plain = graph;
    graph::in_place(graph);
    const Schedule schedule = one_op_a_task(graph);
    for (const InFlight in_flight : {InFlight::lanes(), InFlight::unlimited(), InFlight(2)}) {
      StateLayout state;
      const StepPlan plan = plan_step(graph, schedule, state, {.in_flight = in_flight});
      ASSERT_NO_THROW(verify_step(graph, schedule, plan)) << "seed " << seed << graph::print(graph);
      for (const Plan& packing : plan.packings) turns += turns_taken(packing);
      beside += schedule.tasks.size() > 3;
      for (unsigned run = 0; run < 4; ++run) {
        const Schedule order = shuffled(schedule, plan, random);
        ASSERT_EQ(RegionReplay(graph, order, &plan, run).run(),
                  RegionReplay(plain, graph::coarsen(plain), nullptr, run).run())
            << "seed " << seed << "\n"
            << graph::print(graph);
      }
    }
  }
  EXPECT_GT(turns, 1000u);
  EXPECT_GT(beside, arenite::testing::fewer_where_slow(300u));
}

// A value that both blocks of an `if` read last is dead in the rest of the first one. Who reads it
// beside the `if` keeps it all the same, by the edges of the data or else at the price of one.
TEST(RegionPlans, AReaderBesideTheBlocksKeepsItsValue) {
  for (const std::string lanes : {"@lane(1)", "@lane(2)", ""}) {
    Graph graph = read("$3 = relu($2) @lane(0); $4 = relu($3) @lane(1); $5 = if($1) " + lanes +
                       R"({ $6 = relu($3); $7 = relu($6); $8 = add($7, $7); yield $8; }
                     else { $9 = relu($3); $10 = relu($9); $11 = add($10, $9); yield $11; }
                     $12 = relu($5); $13 = concat($12, $12, $12);
                     $14 = slice($13, begin=0, end=64); $15 = add($14, $4); result = $15;)");
    graph::in_place(graph);
    const Schedule schedule = one_op_a_task(graph);
    for (const InFlight in_flight : {InFlight::lanes(), InFlight::unlimited(), InFlight(2)}) {
      StateLayout state;
      verify_step(graph, schedule, plan_step(graph, schedule, state, {.in_flight = in_flight}));
    }
  }
}

/// The same buffers, needed from their first access to their last.
Problem without_gaps(const Problem& problem) {
  Problem result;
  result.set_granule(problem.granule());
  for (Buffer buffer : problem.buffers()) {
    buffer.gaps.clear();
    result.add(std::move(buffer));
  }
  Precedence order(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t j = 0; j < result.size(); ++j) {
      if (problem.before(i, j)) order.set_before(i, j);
    }
  }
  result.set_precedence(std::move(order));
  return result;
}

TEST(RegionPlans, GapsSaveBytes) {
  const Options fast{.effort = Effort::fast};
  std::int64_t with = 0, without = 0;
  int plans = 0, optimal = 0;
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(200U); ++seed) {
    Graph graph = graph::testing::RandomRegions(seed).make();
    graph::in_place(graph);
    for (const StepProblem& step : step_problems(graph, graph::coarsen(graph), StepOptions{})) {
      const Plan plan = solve(step.problem, fast);
      ++plans;
      optimal += plan.optimal;
      with += plan.peak;
      without += solve(without_gaps(step.problem), fast).peak;
    }
  }
  RecordProperty("bytes_with", static_cast<int>(with));
  RecordProperty("bytes_without", static_cast<int>(without));
  RecordProperty("optimal", optimal);
  EXPECT_GE(optimal, plans - plans / 100);
  EXPECT_LT(with, without - without / 6);
}

TEST(RegionPlans, JoinedSidesSaveBytes) {
  std::int64_t with = 0, without = 0;
  int merged = 0;
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(200U); ++seed) {
    Graph apart = graph::testing::RandomRegions(seed).make();
    graph::join_handovers(apart);
    Graph joined = apart;
    merged += graph::join_sides(joined);
    without += Planned(std::move(apart)).plan.transient_bytes();
    with += Planned(std::move(joined)).plan.transient_bytes();
  }
  RecordProperty("bytes_with", static_cast<int>(with));
  RecordProperty("bytes_without", static_cast<int>(without));
  EXPECT_GT(merged, 100);
  EXPECT_LT(with, without);
}

/// The verifier finds what a replay finds: two storages put in one place, wherever that is wrong.
TEST(RegionPlans, WrongOnesAreFound) {
  std::size_t found = 0, missed = 0;
  std::mt19937 random(3);
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(200U); ++seed) {
    Graph graph = graph::testing::RandomRegions(seed).make();
    graph::in_place(graph);
    Planned planned(std::move(graph));
    std::vector<std::size_t> inner;
    for (std::size_t i = 0; i < planned.plan.placements.size(); ++i) {
      const Placement& place = planned.plan.placements[i];
      if (!place.external && planned.plan.blocks[place.block].name == "step") inner.push_back(i);
    }
    if (inner.size() < 2) continue;
    std::vector<std::vector<RegionReplay::Token>> right;
    for (unsigned run = 0; run < 16; ++run)
      right.push_back(RegionReplay(planned.graph, planned.schedule, &planned.plan, run).run());
    const StepPlan good = planned.plan;
    for (int round = 0; round < 8; ++round) {
      planned.plan = good;
      planned.plan.optimal = false;
      planned.plan.lower_bound = 0;
      Placement& moved = planned.plan.placements[inner[random() % inner.size()]];
      const Placement& onto = planned.plan.placements[inner[random() % inner.size()]];
      if (moved.offset == onto.offset || onto.offset + moved.bytes > good.blocks[onto.block].bytes)
        continue;
      moved.offset = onto.offset;
      bool refused = false;
      try {
        planned.verify();
      } catch (const Error&) {
        refused = true;
      }
      bool differs = false;
      for (unsigned run = 0; run < 16; ++run)
        differs |=
            RegionReplay(planned.graph, planned.schedule, &planned.plan, run).run() != right[run];
      if (differs && !refused) ++missed;
      if (differs && refused) ++found;
    }
  }
  EXPECT_EQ(missed, 0u);
  EXPECT_GT(found, arenite::testing::fewer_where_slow(50u));
}

// ---- what earlier planners got wrong, and what the rules for blocks save ----
// Rows are 256 bytes. Values are read after the `if` or loop by an op that is not done in
// place, and whose result is an output, in a block of its own; so is the input x.

TEST(RegionPlans, BlocksThatExcludeEachOtherShareAndTheLargerCounts) {
  // 4 rows beside r in one block, 2 rows beside r in the other.
  EXPECT_EQ(rows(R"($4 = if($1) {
                      $5 = concat($2, $2, $2, $2); $6 = slice($5, begin=0, end=64);
                      $7 = relu($6);
                      yield $7;
                    } else {
                      $8 = concat($2, $2); $9 = slice($8, begin=64, end=128);
                      $10 = relu($9);
                      yield $10;
                    }
                    $11 = concat($4, $2); result = $11;)"),
            5);
}

// What a block saves for a later one on the same condition: a row or, after a concat, four.
TEST(RegionPlans, WhatIsLeftForOneSideSharesWithWhatIsLeftForTheOther) {
  const auto saved = [](const std::string& one, const std::string& other) {
    return "$3, $4, $5 = if($1) { $6 = " + one +
           "; $7 = slice($6, begin=0, end=64); $8 = relu($7); yield $8, $6, _; } else { $9 = " +
           other + R"(; $10 = slice($9, begin=0, end=64); $11 = relu($10); yield $11, _, $9; }
                    $12 = add($3, $3);
                    $13 = if($1) { $14 = slice($4, begin=0, end=64); $15 = add($12, $14); yield $15;
                    } else { $16 = slice($5, begin=0, end=64); $17 = add($12, $16); yield $17; }
                    $18 = concat($13, $2); result = $18;)";
  };
  const std::string row = "relu($2)", four = "concat($2, $2, $2, $2)";
  EXPECT_EQ(rows(saved(row, row)), 1 + 2);
  EXPECT_EQ(rows(saved(row, row), false), 2 + 2);  // each has a row of its own
  EXPECT_EQ(rows(saved(four, four)), 4 + 2);
  EXPECT_EQ(rows(saved(row, four)), 4 + 2);
  EXPECT_EQ(rows(saved(four, row)), 4 + 2);
}

TEST(RegionPlans, ACaptureOfOneBlockEndsThere) {
  // h is read in one block only, and last: the other block's values may lie where it lay.
  EXPECT_EQ(rows(R"($3 = relu($2);
                    $4 = if($1) {
                      $5 = add($3, $2);
                      yield $5;
                    } else {
                      $6 = add($2, $2);
                      yield $6;
                    }
                    $7 = concat($4, $2); result = $7;)"),
            2);
}

TEST(RegionPlans, AResultThatIsAValueFromOutsideIsCopied) {
  // r may be h or x: neither is overwritten by what follows, and h and x have nothing to do with
  // each other. A planner that took "may be" for "is", and was transitive, made all three one.
  const Graph graph = read(R"($3 = relu($2);
                              $4 = if($1) { yield $3; } else { yield $2; }
                              $5 = add($4, $4);
                              $6 = concat($5, $3); result = $6;)");
  for (unsigned run = 0; run < 8; ++run) expect_sound(graph, run);
  EXPECT_EQ(rows(graph, true), 3);  // h, r and its double
}

TEST(RegionPlans, NestedBlocksShareAtEachLevel) {
  // The largest way: inner block of 3 rows and a result, beside the outer result's place.
  const std::string inner = R"(if($1) {
                      $10 = concat($2, $2, $2); $11 = slice($10, begin=0, end=64);
                      $12 = relu($11);
                      yield $12;
                    } else {
                      $13 = concat($2, $2); $14 = slice($13, begin=0, end=64);
                      $15 = relu($14);
                      yield $15;
                    })";
  EXPECT_EQ(rows("$4 = if($1) { $5 = " + inner + R"( $6 = add($2, $5); yield $6; } else {
                      $7 = concat($2, $2, $2); $8 = slice($7, begin=0, end=64); $9 = relu($8);
                      yield $9;
                    }
                    $16 = concat($4, $2); result = $16;)"),
            4);
}

TEST(RegionPlans, ALoopFindsItsCapturesInEveryTrip) {
  // h and the carried value (with the trip's number) live through the loop, what a trip makes comes
  // and goes.
  EXPECT_EQ(rows(R"($3 = relu($2);
                    $4 = loop(_, _, $2, max_trips=9) ($5, $6) {
                      $7 = add($3, $3);
                      $8 = add($7, $6);
                      yield $8;
                    }
                    $9 = concat($4, $2); result = $9;)"),
            4);
}

TEST(RegionPlans, CarriedValuesThatSwapAreSetAside) {
  const Graph graph = read(R"($3 = relu($2); $4 = add($2, $2);
                              $5, $6 = loop($1, _, $3, $4, max_trips=3) ($7, $8, $9) {
                                yield $9, $8;
                              }
                              $10 = add($5, $6);
                              $11 = concat($10, $6); result = $11;)");
  for (unsigned run = 0; run < 8; ++run) expect_sound(graph, run);
  EXPECT_EQ(rows(graph, true), 5);  // trip, two values and two beside them while they swap
}

TEST(RegionPlans, APrefixSumTakesTwoBlocks) {
  // Each trip adds to every element the one before it, at twice the distance: what it reads is a
  // part of what it would overwrite. Two blocks, however many trips; the trip's number, which
  // nobody reads, lies in one of them while it is free.
  EXPECT_EQ(rows(R"($3 = concat($2, $2, $2, $2);
                    $4 = loop(_, _, $3, max_trips=8) ($5, $6) {
                      $7 = slice($6, begin=0, end=192);
                      $8 = concat($7, $2);
                      $9 = add($6, $8);
                      yield $9;
                    }
                    $10 = concat($4, $2); result = $10;)"),
            4 + 4);
}

// Each loop walked until it settles, inside one that is walked until it settles, … would take 2^64.
TEST(RegionPlans, LoopsInLoopsTakeTimeThatGrowsWithTheirDepthOnly) {
  std::string script, ends;
  std::size_t number = 10;
  std::string carried = "$2";
  for (std::size_t depth = 0; depth < graph::max_region_depth; ++depth) {
    const auto name = [&](std::size_t k) { return "$" + std::to_string(number + k); };
    script += name(0) + " = loop($1, _, " + carried + ", max_trips=3) (" + name(1) + ", " +
              name(2) + ") {\n";
    const bool innermost = depth + 1 == graph::max_region_depth;
    ends = "yield " + name(innermost ? 2 : 3) + "; }\n" + ends;
    carried = name(2);
    number += 3;
  }
  Graph graph = read(script + ends + "result = $10;");
  graph::in_place(graph);
  const Planned planned(std::move(graph));
  planned.verify();
}

TEST(RegionPlans, EveryBlockIsAPartOfItsOpsTask) {
  const Planned planned(
      read("$3 = relu($2); $4 = if($1) { $5 = relu($3); yield $5; } else { yield "
           "$3; } $6 = concat($4, $2); result = $6;"));
  std::size_t ops = 0;
  for (const graph::Task& task : planned.schedule.tasks) ops += task.ops.size();
  EXPECT_EQ(ops, 3u);
}

TEST(RegionPlans, AreRefusedWithoutAWorkspaceToSwapIn) {
  const Graph graph = read(R"($3 = relu($2);
                              $5, $6 = loop($1, _, $3, $2, max_trips=3) ($7, $8, $9) {
                                yield $9, $8;
                              }
                              $10 = add($5, $6); result = $10;)");
  const Planned planned(graph);
  EXPECT_EQ(error_of([&] { planned.verify(); }),
            "step plan: loop #1 with a workspace of 0 bytes; expected 512, for values that change "
            "at once (hint: graph::in_place adds it)");
}

TEST(RegionPlans, SayWhichBytesAreTaken) {
  Graph graph = read(R"($3 @name(h) = relu($2);
                        $4 @name(r) = loop(_, _, $2, max_trips=9) ($5, $6) {
                          $7 @name(t) = add($3, $3); $8 = add($7, $6); yield $8;
                        }
                        $9 = add($4, $4); result = $9;)");
  graph::in_place(graph);
  Planned planned(std::move(graph));
  const auto place = [&](const std::string& name) -> Placement& {
    for (Placement& p : planned.plan.placements) {
      if (p.name == name) return p;
    }
    throw std::out_of_range(name);
  };
  place("t").offset = place("h").offset;
  EXPECT_EQ(error_of([&] { planned.verify(); }),
            "step plan: 't' takes bytes of 'h' within loop #3; expected bytes that add #1 finds as "
            "they were");
}

}  // namespace
}  // namespace arenite::plan
