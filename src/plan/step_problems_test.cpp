#include <arenite/graph/builder.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

using graph::Builder;
using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

/// A chain of ops, each second result in another space, an op a task.
struct Chain {
  Graph graph;
  graph::Schedule schedule;

  Chain() {
    Builder builder(graph, operators());
    ValueId x = builder.declare("x", DType::float32, {8, 64}, StorageClass::input);
    for (int i = 0; i < 8; ++i) {
      x = builder.add1("relu", {x});
      if (i % 2 == 1) graph.storage(graph[x].storage).space = {.device = DeviceKind::cuda};
    }
    graph::TargetProfile target;
    target.task_microseconds = target.phase_microseconds = 0;
    schedule = graph::coarsen(graph, target);
  }
};

TEST(StepProblems, AreWhatThePackingsSolve) {
  const Chain chain;
  for (const ArenaLayout layout : {ArenaLayout::overlay, ArenaLayout::two}) {
    StateLayout state;
    const StepOptions options{.layout = layout};
    const StepPlan plan = plan_step(chain.graph, chain.schedule, state, options);
    const auto problems = step_problems(chain.graph, chain.schedule, options);
    ASSERT_EQ(problems.size(), plan.packings.size());
    for (std::size_t i = 0; i < problems.size(); ++i) {
      verify(problems[i].problem, plan.packings[i]);
      EXPECT_EQ(problems[i].problem.buffers(), plan.packings[i].buffers);
      for (const graph::StorageId id : problems[i].storages)
        EXPECT_EQ(plan.blocks[plan.placement(id).block].name, problems[i].block);
    }
  }
}

TEST(StepProblems, WholesHoldEverySpace) {
  const Chain chain;
  StateLayout state;
  const StepPlan plan = plan_step(chain.graph, chain.schedule, state);
  const Plan whole = whole_plan(plan);
  ASSERT_EQ(plan.packings.size(), 2u);
  verify(whole_problem(step_problems(chain.graph, chain.schedule)), whole);
  EXPECT_EQ(whole.spaces.size(), 2u);
  EXPECT_EQ(whole.buffers.size(), 8u);
  EXPECT_EQ(whole.peak, plan.transient_bytes());
  EXPECT_EQ(whole.lower_bound, plan.lower_bound);
  EXPECT_EQ(whole.strategy, plan.packings[0].strategy);

  const auto problems = step_problems(chain.graph, chain.schedule);
  const Problem together = whole_problem(problems);
  std::size_t from = 0;
  for (const StepProblem& part : problems) {
    for (std::size_t i = 0; i < part.problem.size(); ++i) {
      for (std::size_t j = 0; j < part.problem.size(); ++j) {
        EXPECT_EQ(together.before(from + i, from + j), part.problem.before(i, j));
      }
    }
    from += part.problem.size();
  }

  // Sound by its order only.
  EXPECT_EQ(whole.offsets, std::vector<std::int64_t>(8, 0));
  const StepOptions apart{.reuse = false};
  EXPECT_ERROR("overlap",
               verify(whole_problem(step_problems(chain.graph, chain.schedule, apart)), whole));
}

TEST(StepProblems, WholesNeedABlockASpace) {
  const auto problems = step_problems(graph::Graph{}, {}, {.layout = ArenaLayout::two});
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_ERROR("two blocks in space cpu:0/host", whole_problem(problems));
  StepPlan plan;
  plan.packings.resize(2);
  for (Plan& packing : plan.packings) packing.spaces.resize(1);
  EXPECT_ERROR("two blocks in space cpu:0/host", whole_plan(plan));
}

TEST(StepProblems, RefuseSumsThatWouldOverflow) {
  for (const StorageClass cls : {StorageClass::input, StorageClass::parameter}) {
    Graph graph;
    Builder builder(graph, operators());
    for (int i = 0; i < 2; ++i) {
      const ValueId x = builder.declare("x" + std::to_string(i), DType::float32, {4}, cls);
      graph.storage(graph[x].storage).bytes = Problem::limit / 2;
    }
    StateLayout state;
    EXPECT_ERROR("'x1': storages that pass 2^60 bytes in sum", plan_step(graph, {}, state));
  }
}

}  // namespace
}  // namespace arenite::plan
