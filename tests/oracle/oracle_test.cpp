// The strongest oracle: random programs give the same bits with memory reused, what is dead
// poisoned and tasks in any legal order, as with nothing shared and in program order.
#include <arenite/error.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "tests/oracle/features.hpp"
#include "tests/oracle/on_runtime.hpp"
#include "tests/oracle/orders.hpp"

#include <array>

namespace arenite::oracle {
namespace {

/// Plain kernels are those of sanitizers, under which everything is slow.
constexpr std::uint32_t programs = 300, programs_run = ARENITE_PLAIN_KERNELS ? 40 : programs;

TEST(RandomPrograms, HaveEverythingInThemOften) {
  Features found;
  for (std::uint32_t number = 0; number < programs; ++number)
    count_features(random_program(number), found);
  const Features wanted{
      {"reuse edges", 500},
      {"data edges", 4000},
      {"programs with reuse edges", 80},
      {"programs with several lanes", 100},
      {"programs with one op a task", 80},
      {"programs over the same blocks", 100},
      {"programs that may be broken", 100},
      {"remainder programs", 100},
      {"layout overlay", 100},
      {"layout two", 100},
      {"pairs of storages that share bytes", 5000},
      {"tasks of several ops", 700},
      {"staging tasks", 300},
      {"evaluation ops", 500},
      {"in-place results", 1500},
      {"saved activations", 1000},
      {"odd shapes", 6000},
      {"empty values", 5},
      {"views", 800},
      {"values with several users", 3000},
      {"operands twice", 100},
      {"new versions, persistent", 1000},
      {"new versions, transient", 40},
      {"new versions of views or results", 150},
      {"new versions in place", 1000},
      {"ops with several results", 900},
      {"ops with one of several results unused", 500},
      {"outputs", 300},
      {"outputs that are views", 50},
      {"outputs that ops read", 30},
      {"outputs of inputs or parameters", 30},
      {"programs of batch_norm", 8},
      {"programs of dropout", 8},
      {"programs of updates by several batches", 8},
  };
  for (const auto& [name, least] : wanted) EXPECT_GE(found[name], least) << name;
  if (!ARENITE_PLAIN_KERNELS) {
    EXPECT_GE(found["workspaces"], 1500);
    EXPECT_GE(found["halos"], 200);
  }
  for (const std::string& op : operators().names()) {
    if (operators().at(op)->control != graph::Control::none) continue;  // block_program_test
    if (operators().at(op)->in_mode) continue;  // what they are made of is there
    EXPECT_GE(found["op " + op], 8)
        << "operator '" << op << "' is hardly used: add it to tests/oracle/random_ops.cpp";
  }
}

TEST(RandomPrograms, AreTheSameEveryTime) {
  for (std::uint32_t number : {6u, 7u}) {
    const RandomProgram one = random_program(number), other = random_program(number),
                        data = random_program(number, 1);
    const Kernels kernels = real_kernels(one);
    const Trace trace = reference(one, kernels);
    EXPECT_EQ(difference(reference(other, kernels), trace), "");
    EXPECT_NE(difference(reference(data, kernels), trace), "");
    for (std::size_t p = 0; p < one.programs.size(); ++p) {
      EXPECT_EQ(one.programs[p].plan.placements, other.programs[p].plan.placements);
      EXPECT_EQ(one.programs[p].plan.placements, data.programs[p].plan.placements);
    }
  }
}

TEST(RandomPrograms, WithoutSharingShareNothing) {
  Features found;
  for (std::uint32_t number = 0; number < 20; ++number)
    count_features(without_sharing(random_program(number)), found);
  EXPECT_EQ(found["pairs of storages that share bytes"], 0);
  EXPECT_EQ(found["in-place results"], 0);
  EXPECT_EQ(found["reuse edges"], 0);
}

TEST(Orders, KeepEveryEdge) {
  for (std::uint32_t number = 0; number < 10; ++number) {
    const Timeline timeline(random_program(number));
    for (Policy policy : {Policy::random, Policy::depth_first, Policy::newest_first,
                          Policy::oldest_first, Policy::latest_first}) {
      const std::vector<Event> order = arrange(timeline, policy, number);
      ASSERT_EQ(order.size(), timeline.events().size());
      std::vector<std::size_t> position(order.size());
      for (std::size_t i = 0; i < order.size(); ++i)
        position.at(timeline.find(order[i].step, order[i].op)) = i;
      for (std::size_t event = 0; event < position.size(); ++event) {
        for (std::size_t first : timeline.before(event))
          EXPECT_LT(position[first], position[event]);
      }
    }
  }
}

TEST(Executor, RefusesAnOrderThatIsNone) {
  const RandomProgram program = random_program(1);
  const Kernels kernels = mixing_kernels(program);
  const auto run = [&](const std::vector<Event>& order) {
    execute(program, kernels, order, Poison::dead);
  };
  const std::vector<Event> order = Timeline(program).events();
  EXPECT_NO_THROW(run(order));
  EXPECT_THROW(run({order.begin(), order.end() - 1}), Error);
  EXPECT_THROW(run({order.rbegin(), order.rend()}), Error);
}

TEST(Executor, SeesAnOpThatLeavesItsResultsUnwritten) {
  const RandomProgram program = random_program(1);
  const std::vector<Event> order = arrange(Timeline(program), Policy::program_order, 0);
  const graph::Graph& graph = program.programs.front().graph;
  for (graph::OpId id : graph[graph::Graph::body].ops) {
    // What persists keeps its old version, and what has no bytes shows none.
    const bool shows_nothing = std::ranges::all_of(graph[id].results, [&](graph::ValueId result) {
      const graph::Storage& storage = graph.root_storage(result);
      return graph::is_persistent(storage.cls) || storage.bytes == 0;
    });
    if (graph[id].kernel.empty() || shows_nothing) continue;
    Kernels kernels = mixing_kernels(program);
    kernels.front()[id.index].run = [](const runtime::KernelCall&) {};
    EXPECT_NE(
        difference(execute(program, kernels, order, Poison::dead), reference(program, kernels)), "")
        << describe(graph, id);
  }
}

TEST(Oracle, BitsAreTheSameInEveryOrderOfPoisonedMemory) {
  constexpr std::array policies{Policy::program_order, Policy::random,       Policy::random,
                                Policy::depth_first,   Policy::newest_first, Policy::oldest_first,
                                Policy::latest_first};
  for (std::uint32_t number = 0; number < programs_run; ++number) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number);
    for (const runtime::ProgramSpec& spec : program.programs)
      EXPECT_NO_THROW(plan::verify_step(spec.graph, spec.schedule, spec.plan));
    const Kernels kernels = real_kernels(program), mixing = mixing_kernels(program);
    const Trace expected = reference(program, kernels), mixed = reference(program, mixing);
    for (const Seen& step : expected) EXPECT_EQ(step.status, runtime::StatusWord::ok);
    EXPECT_FALSE(has_wild_numbers(program, expected));
    const Timeline timeline(program);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const auto order = arrange(timeline, policies[i], static_cast<std::uint32_t>(i));
      EXPECT_EQ(difference(execute(program, kernels, order, Poison::dead), expected), "") << i;
      EXPECT_EQ(difference(execute(program, mixing, order, Poison::dead), mixed), "") << i;
    }
  }
}

class OnRuntime : public ::testing::TestWithParam<int> {};

TEST_P(OnRuntime, BitsAreTheSame) {
  const int workers = GetParam();
  // As many workers as there are cores run tasks side by side; more have another scheduler.
  const std::uint32_t stride = workers == 2 ? 1 : 7;
  runtime::Session session({.workers = workers});
  for (std::uint32_t number = 0; number < programs_run; number += stride) {
    SCOPED_TRACE("program " + std::to_string(number));
    const RandomProgram program = random_program(number);
    const Trace expected = reference(program, real_kernels(program));
    const RuntimeTrace found =
        run_on(session, program, {.task_sets = 2 + static_cast<int>(number % 2)});
    EXPECT_EQ(difference(found.steps, expected), "");
    EXPECT_EQ(difference(found.crews, expected), "") << "by crews";
    EXPECT_EQ(difference({found.ahead}, {expected.back()}), "") << "submitted ahead";
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, OnRuntime, ::testing::Values(2, 4));

}  // namespace
}  // namespace arenite::oracle
