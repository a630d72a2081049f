// How many tasks may be under way at once: in a step, and in a table.
#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/plan/in_flight.hpp>
#include <arenite/plan/solve.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/plan/verify.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "src/graph/random_graph.hpp"
#include "src/plan/task_order.hpp"
#include "src/plan/testing.hpp"

namespace arenite::plan {
namespace {

/// Peaks are not what these tests are about.
const Options quick{.strategy = "first_fit_by_size"};

struct Step {
  graph::Graph graph;
  graph::Schedule schedule;  // an op a task
};

Step random_step(unsigned seed) {
  Step step{.graph = graph::testing::RandomGraph(seed).make(), .schedule = {}};
  // A space has one capacity and a name stands for one parameter; the graph may say otherwise.
  for (std::size_t i = 0; i < step.graph.storage_count(); ++i) {
    graph::Storage& storage = step.graph.storage(graph::StorageId(i));
    storage.space.capacity = Space{}.capacity;
    storage.name = "s" + std::to_string(i);
  }
  graph::TargetProfile target;
  target.task_microseconds = target.phase_microseconds = 0;
  step.schedule = graph::coarsen(step.graph, target);
  return step;
}

const std::vector<InFlight> fewer_to_more{InFlight(1), InFlight(2), InFlight(3), InFlight(7),
                                          InFlight::unlimited()};

TEST(TasksInFlight, OrderIsThatOfAllItsEdges) {
  for (unsigned seed = 0; seed < fewer_where_slow(100U); ++seed) {
    const Step step = random_step(seed);
    const std::size_t tasks = step.schedule.tasks.size();
    for (std::size_t in_flight : {1u, 2u, 5u, 64u, 65u}) {
      std::vector<TaskEdge> edges;
      for (std::size_t a = 0; a < tasks; ++a) {
        for (std::size_t b = a + in_flight; b < tasks; ++b)
          edges.push_back({graph::TaskId(a), graph::TaskId(b)});
      }
      const TaskOrder expected(step.schedule, edges);
      TaskOrder order(step.schedule);
      order.let_at_most(in_flight);
      for (std::size_t b = 0; b < tasks; ++b) {
        for (std::size_t a = 0; a < tasks; ++a)
          EXPECT_EQ(order.before(a, b), expected.before(a, b)) << a << " " << b;
      }
    }
  }
}

TEST(TasksInFlight, OrderOfManyTasks) {
  graph::Schedule schedule;
  schedule.tasks.resize(200);
  TaskOrder order(schedule);
  order.let_at_most(70);
  for (std::size_t b = 0; b < 200; ++b) {
    for (std::size_t a = 0; a < 200; ++a) EXPECT_EQ(order.before(a, b), a + 70 <= b);
  }
  EXPECT_ERROR("0 tasks in flight; expected at least 1", order.let_at_most(0));
  EXPECT_ERROR("0 tasks in flight; expected at least 1", InFlight(0));
}

TEST(TasksInFlight, PlansAreSoundAndMoreTasksNeedNoLessMemory) {
  std::size_t edges = 0, growths = 0;
  for (unsigned seed = 0; seed < fewer_where_slow(300U); ++seed) {
    SCOPED_TRACE(seed);
    const Step step = random_step(seed);
    std::int64_t least = 0;
    for (const InFlight in_flight : fewer_to_more) {
      SCOPED_TRACE(to_string(in_flight));
      for (const ArenaLayout layout : {ArenaLayout::overlay, ArenaLayout::two}) {
        const StepOptions options{.layout = layout, .in_flight = in_flight, .solve = quick};
        StateLayout state;
        const StepPlan plan = plan_step(step.graph, step.schedule, state, options);
        verify_step(step.graph, step.schedule, plan);
        EXPECT_GE(plan.critical_path, plan.critical_path_without);
        if (in_flight.is_unlimited()) {
          EXPECT_TRUE(plan.reuse_edges.empty());
          EXPECT_EQ(plan.critical_path, plan.critical_path_without);
        }
        if (layout == ArenaLayout::two) continue;
        edges += plan.reuse_edges.size();
        const Plan whole = whole_plan(plan);
        verify(whole_problem(step_problems(step.graph, step.schedule, options)), whole);
        EXPECT_EQ(whole.lower_bound, plan.lower_bound);
        EXPECT_GE(whole.max_live, least);
        growths += whole.max_live > least && least > 0;
        least = whole.max_live;
      }
    }
    // Lanes in their order are more order than the data has.
    StateLayout state;
    const std::int64_t lanes =
        whole_plan(plan_step(step.graph, step.schedule, state, {.solve = quick})).max_live;
    EXPECT_LE(lanes, least);
  }
  EXPECT_GT(edges, fewer_where_slow(1000u));
  EXPECT_GT(growths, fewer_where_slow(200u));
}

TEST(TasksInFlight, KeepATablesBytesLonger) {
  Problem line;
  line.add({.name = "x", .bytes = 4, .lifetime = {0, 2}, .alignment = 1});
  line.add({.name = "y", .bytes = 4, .lifetime = {2, 4}, .alignment = 1});
  line.add({.name = "z", .bytes = 4, .lifetime = {4, 6}, .alignment = 1});
  EXPECT_EQ(with_tasks_in_flight(line, 1).buffers(), line.buffers());
  EXPECT_EQ(with_tasks_in_flight(line, 3)[0].lifetime, (Lifetime{0, 4}));
  EXPECT_EQ(solve(with_tasks_in_flight(line, 1)).peak, 4);
  EXPECT_EQ(solve(with_tasks_in_flight(line, 2)).peak, 8);
  EXPECT_EQ(solve(with_tasks_in_flight(line, 3)).peak, 8);
  EXPECT_EQ(solve(with_tasks_in_flight(line, 4)).peak, 12);
}

TEST(TasksInFlight, NeedMoreOfATableTheMoreTheyAre) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const Problem line = random_intervals(random, 12);
    std::int64_t least = 0;
    for (const std::int64_t tasks : {1, 2, 3, 9}) {
      const Problem longer = with_tasks_in_flight(line, tasks);
      const Plan plan = solve(longer, quick);
      verify(longer, plan);
      EXPECT_GE(plan.max_live, least);
      least = plan.max_live;
    }
  }
}

TEST(TasksInFlight, RefusesTablesThatWouldOverflow) {
  Problem line;
  line.add({.name = "x", .bytes = 4, .lifetime = {0, 10}});
  EXPECT_EQ(with_tasks_in_flight(line, Problem::limit - 9)[0].lifetime.end, Problem::limit);
  EXPECT_ERROR("buffer 'x': a lifetime that ends", with_tasks_in_flight(line, Problem::limit - 8));
  EXPECT_ERROR("expected an end of at most 2^60",
               with_tasks_in_flight(line, std::numeric_limits<std::int64_t>::max()));
  EXPECT_ERROR("0 tasks in flight; expected at least 1", with_tasks_in_flight(line, 0));

  Problem early;
  early.add({.name = "x", .bytes = 4, .lifetime = {-Problem::limit, -10}});
  EXPECT_EQ(with_tasks_in_flight(early, Problem::limit)[0].lifetime.end, Problem::limit - 11);

  line.set_precedence(Precedence(1));
  EXPECT_ERROR("in a partial order", with_tasks_in_flight(line, 2));
  Problem timeless;
  timeless.add({.name = "x", .bytes = 4});
  EXPECT_ERROR("buffer 'x' without a lifetime", with_tasks_in_flight(timeless, 2));
}

}  // namespace
}  // namespace arenite::plan
