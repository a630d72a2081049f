#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

struct Coarsen : ::testing::Test {
  Graph graph;

  Graph lanes(int count) {
    Graph forward;
    Builder b(forward, operators());
    ValueId v = b.declare("x", DType::float32, {64, 64}, StorageClass::input);
    for (int i = 0; i < 12; ++i) {
      const ValueId w =
          b.declare("w" + std::to_string(i), DType::float32, {64, 64}, StorageClass::parameter);
      v = b.add1("relu", {b.add1("dense", {v, w})});
    }
    forward.outputs = {v};
    BatchGraph split = *split_batch(forward, operators(), {.lanes = count});
    select(split.graph, *runtime::kernel_selector(kernels()));
    return std::move(split.graph);
  }
};

/// True when the tasks are one, or a path of edges leads from a to b.
bool leads(const Schedule& schedule, std::size_t a, std::size_t b) {
  std::vector<std::size_t> open{b};
  std::set<std::size_t> seen{b};
  while (!open.empty()) {
    const std::size_t t = open.back();
    open.pop_back();
    if (t == a) return true;
    for (TaskId p : schedule.tasks[t].predecessors) {
      if (seen.insert(p.index).second) open.push_back(p.index);
    }
  }
  return false;
}

TEST_F(Coarsen, StagesOnlyWhatTouchesNothingOfAStep) {
  OperatorTable table;
  table.add(
      {.name = "fetch", .operands = {{"from"}}, .results = {"to"}, .infer = [](const OpView&) {
         return std::vector<ResultType>{{DType::float32, Shape{8}}};
       }});
  Builder own(graph, table);
  const ValueId data = own.declare("data", DType::float32, {8}, StorageClass::constant);
  const ValueId plain = own.add1("fetch", {data}), scratched = own.add1("fetch", {data});
  for (ValueId id : {plain, scratched}) graph.storage(graph[id].storage).cls = StorageClass::input;
  const StorageId scratch =
      graph.add_storage({.name = "scratch", .cls = StorageClass::workspace, .bytes = 64});
  Op& op = graph[graph[scratched].producer];
  op.workspace =
      graph.add_value({.name = "scratch", .type = DType::uint8, .shape = {64}, .storage = scratch});
  const Schedule schedule = coarsen(graph);
  ASSERT_EQ(schedule.tasks.size(), 2u);
  for (const Task& task : schedule.tasks)
    EXPECT_EQ(task.staging, task.ops.front() == graph[plain].producer);
}

/// Ops of 10 µs each, whatever they are.
TargetProfile ten_microseconds_an_op() {
  return {.otherwise = {1e30, 1e30},
          .op_microseconds = 10,
          .task_microseconds = 50,
          .phase_microseconds = 200};
}

std::vector<std::size_t> sizes(const Schedule& schedule) {
  std::vector<std::size_t> all;
  for (const Task& task : schedule.tasks) all.push_back(task.ops.size());
  return all;
}

TEST_F(Coarsen, FillsTasksAndLeavesNoSmallOneAtTheEnd) {
  // 24 ops, 240 µs: five a task, and the last four, too little for a task, join the fourth.
  const Schedule schedule = coarsen(lanes(1), ten_microseconds_an_op());
  EXPECT_EQ(sizes(schedule), (std::vector<std::size_t>{5, 5, 5, 9}));
  EXPECT_DOUBLE_EQ(schedule.tasks.back().microseconds, 90);
}

TEST_F(Coarsen, MakesASmallPhaseOneTaskALane) {
  TargetProfile target = ten_microseconds_an_op();
  target.phase_microseconds = 241;
  EXPECT_EQ(sizes(coarsen(lanes(2), target)), (std::vector<std::size_t>{24, 24}));
  target.phase_microseconds = 239;
  EXPECT_EQ(sizes(coarsen(lanes(1), target)).size(), 4u);
}

/// Nothing runs beside what all lanes have in common but itself: their workers share it.
TEST_F(Coarsen, DealsOutWhatLanesHaveInCommon) {
  for (const int count : {1, 2}) {
    Graph g = lanes(count);
    Builder b(g, operators());
    b.context = {.phase = Phase::update, .lane = Op::shared_lane, .where = "shared"};
    for (int i = 0; i < 12; ++i) {
      const ValueId x =
          b.declare("s" + std::to_string(i), DType::float32, {64}, StorageClass::parameter);
      b.add1("relu", {x});
    }
    for (OpId op : g[Graph::body].ops) g[op].kernel = "plain";
    TargetProfile target = ten_microseconds_an_op();
    target.phase_microseconds = 1000;
    for (const double meeting : {20, 1000}) {
      target.meeting_microseconds = meeting;
      const auto found = sizes(coarsen(g, target));
      if (count == 1) {
        EXPECT_EQ(found, (std::vector<std::size_t>{24, 12}));
      } else if (meeting == 20) {  // two ops
        EXPECT_EQ(found, (std::vector<std::size_t>{24, 24, 2, 2, 2, 2, 2, 2}));
      } else {  // as many as any task
        EXPECT_EQ(found, (std::vector<std::size_t>{24, 24, 5, 7}));
      }
    }
  }
}

TEST_F(Coarsen, LetsNoLaneWaitForWhatItsTaskNeedsLater) {
  Graph g;
  Builder b(g, operators());
  const ValueId x = b.declare("x", DType::float32, {64}, StorageClass::parameter);
  std::vector<ValueId> own;
  for (int lane = 0; lane < 2; ++lane) {
    b.context = {.phase = Phase::forward, .lane = lane};
    own.push_back(b.add1("relu", {x}));
  }
  for (int lane = 0; lane < 2; ++lane) {
    b.context.lane = lane;
    const ValueId other = own[1 - static_cast<std::size_t>(lane)];
    b.add1("relu", {b.add1("sum", {own[static_cast<std::size_t>(lane)], other})});
  }
  for (OpId op : g[Graph::body].ops) g[op].kernel = "plain";
  TargetProfile target = ten_microseconds_an_op();
  target.phase_microseconds = 1000;
  const Schedule schedule = coarsen(g, target);
  EXPECT_EQ(sizes(schedule), (std::vector<std::size_t>{1, 1, 2, 2}));
  for (std::size_t t : {2, 3})
    EXPECT_EQ(schedule.tasks[t].predecessors, (std::vector{TaskId(0), TaskId(1)}));
}

TEST_F(Coarsen, TakesRatesByOperatorAndKernel) {
  const Graph g = lanes(1);
  const Op& dense = g[g[Graph::body].ops.front()];
  TargetProfile target;
  target.op_microseconds = 1;
  target.kernels["dense/" + dense.kernel] = {.gflops = 2, .gigabytes = 1e9};
  // 2 · 64 · 64 · 64 operations at 2 GFLOP/s.
  EXPECT_NEAR(target.microseconds({g, dense}), 1 + 262.144, 1e-9);
  target.kernels["dense/" + dense.kernel] = {.gflops = 1e9, .gigabytes = 1};
  EXPECT_NEAR(target.microseconds({g, dense}), 1 + 3 * 64 * 64 * 4 * 1e-3, 1e-9);
}

TEST_F(Coarsen, RefusesRatesAndTimesThatAreNone) {
  const auto refusal = [&](TargetProfile target) {
    return error_of([&] { coarsen(graph, target); });
  };
  EXPECT_EQ(refusal({.kernels = {{"dense/xsmm", {.gflops = 0}}}}),
            "target profile 'unmeasured': 0.0 GFLOP/s and inf GB/s of 'dense/xsmm'; expected rates "
            "above 0");
  EXPECT_EQ(refusal({.task_microseconds = -1}),
            "target profile 'unmeasured': a time of -1.0 µs; expected times of at least 0");
  EXPECT_EQ(refusal({.kernels = {{"dense/xsmm", {.gflops = 5}}}}), "(no error)");
}

TEST_F(Coarsen, KeepsLanesApartAndDependencies) {
  for (int count : {1, 2, 4}) {
    for (double grain : {0.0, 10.0, 1e9}) {
      const Graph g = lanes(count);
      TargetProfile model;
      model.task_microseconds = model.phase_microseconds = grain;
      const Schedule schedule = coarsen(g, model);
      std::map<std::uint32_t, std::size_t> task_of;
      std::size_t ops = 0;
      for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
        for (OpId id : schedule.tasks[t].ops) {
          EXPECT_EQ(g[id].lane, schedule.tasks[t].lane);
          task_of[id.index] = t;
          ++ops;
        }
        for (TaskId p : schedule.tasks[t].predecessors) EXPECT_LT(p.index, t);
      }
      const auto runs = [&](OpId id) { return !is_view_op(g, id); };  // lanes' rows are views
      EXPECT_EQ(ops, static_cast<std::size_t>(std::ranges::count_if(g[Graph::body].ops, runs)));
      const Dependencies needed = dependencies(g);
      for (OpId op : needed.ops) {
        for (OpId before : needed.of(op))
          EXPECT_TRUE(leads(schedule, task_of[before.index], task_of[op.index]));
      }
      if (grain == 1e9) {
        EXPECT_EQ(schedule.tasks.size(), static_cast<std::size_t>(count));
      }
      if (grain == 0.0) {
        EXPECT_EQ(schedule.tasks.size(), ops);
      }
    }
  }
}

}  // namespace
}  // namespace arenite::graph
