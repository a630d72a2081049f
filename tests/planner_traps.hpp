// Scripts as planned steps, plans with one storage moved, and a replay that tells whether a plan
// destroys what is still needed.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <gtest/gtest.h>

#include "tests/oracle/touches.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace arenite::plan {

/// y = x, with 1024 bytes of scratch.
inline void register_trap_scratch() {
  static const bool once = [] {
    register_operator(
        {.name = "trap_scratch",
         .operands = {{"x"}},
         .results = {"y"},
         .infer =
             [](const graph::OpView& op) {
               return std::vector<graph::ResultType>{{op.operand(0).type, op.operand(0).shape}};
             }},
        {{.name = "plain",
          .workspace = [](const graph::OpView&) { return std::int64_t{1024}; },
          .prepare = [](const graph::OpView&) -> runtime::PreparedKernel {
            return {[](const runtime::KernelCall&) {}, nullptr};
          }}});
    return true;
  }();
  static_cast<void>(once);
}

inline graph::Schedule one_op_a_task(const graph::Graph& graph) {
  graph::TargetProfile target;
  target.task_microseconds = target.phase_microseconds = 0;
  return graph::coarsen(graph, target);
}

/// A script as a planned step. One task in flight, unless said otherwise: all reuse is allowed that
/// program order allows, so that every trap is open.
struct Step {
  graph::Graph graph;
  graph::Schedule schedule;
  StateLayout state;
  StepPlan plan;

  explicit Step(const std::string& script, bool in_place = false, InFlight in_flight = InFlight(1),
                const std::function<void(Step&)>& change = {})
      : graph(graph::parse(script, operators())) {
    graph::select(graph, *runtime::kernel_selector(kernels()));
    if (in_place) graph::in_place(graph);
    if (change) change(*this);
    schedule = one_op_a_task(graph);
    plan = plan_step(graph, schedule, state, {.in_flight = in_flight});
  }

  graph::StorageId root(const std::string& name) const {
    for (std::size_t i = 0; i < graph.value_count(); ++i)
      if (graph[graph::ValueId(i)].name == name) return graph.root(graph::ValueId(i));
    fail({.found = "no value '" + name + "'", .expected = "one"});
  }
  const Placement& place(const std::string& name) const { return plan.placement(root(name)); }
  const BlockPlan& block(const std::string& name) const { return plan.blocks[place(name).block]; }

  /// The plan with one storage moved: `beyond` bytes behind where another one begins.
  StepPlan with(const std::string& name, const std::string& onto, std::int64_t beyond = 0) const {
    StepPlan moved = plan;
    moved.lower_bound = 0;  // so that only the place can be at fault
    moved.optimal = false;
    for (Placement& place_of : moved.placements) {
      if (place_of.storage != root(name)) continue;
      place_of.block = place(onto).block;
      place_of.offset = place(onto).offset + beyond;
      place_of.external = false;
      moved.blocks[place_of.block].bytes += place_of.offset + place_of.bytes;
    }
    return moved;
  }
};

/// Runs a plan on labels instead of numbers: every 256 bytes know whose they are. Shares no code
/// with the planner or its verifier. One device: spaces are the verifier's alone.
class Replay {
 public:
  Replay(const Step& step, const StepPlan& plan) : step_(step), plan_(plan) {}

  /// What was found overwritten when it was read, in program order and in random orders of the
  /// tasks; empty when all is well.
  std::string lost(int evaluations = 2) {
    std::mt19937 random(1);
    for (int order = 0; order < 200 && lost_.empty(); ++order) {
      owner_.clear();
      fill([](graph::StorageClass cls) {
        return graph::is_persistent(cls) || cls == graph::StorageClass::constant;
      });
      for (int i = 0; i < evaluations; ++i) evaluate(order == 0 ? nullptr : &random);
    }
    return lost_;
  }

 private:
  using Granule = std::pair<std::size_t, std::int64_t>;

  template <class Action>
  void for_each_granule(graph::StorageId id, std::int64_t begin, std::int64_t end, Action action) {
    const Placement& place = plan_.placement(id);
    if (place.external) return;
    const std::int64_t first = begin / default_alignment;
    for (std::int64_t at = first; at * default_alignment < end; ++at)
      action(Granule(place.block, place.offset / default_alignment + at));
  }

  void fill(const std::function<bool(graph::StorageClass)>& chosen) {
    for (const Placement& place : plan_.placements) {
      if (chosen(place.cls)) write(place.storage, 0, place.bytes);
    }
  }

  void write(graph::StorageId id, std::int64_t begin, std::int64_t end) {
    for_each_granule(id, begin, end, [&](Granule granule) { owner_[granule] = id; });
  }

  void read(graph::StorageId id, std::int64_t begin, std::int64_t end, const std::string& reader) {
    for_each_granule(id, begin, end, [&](Granule granule) {
      if (owner_[granule] == id || !lost_.empty()) return;
      lost_ = step_.graph.storage(id).name + " for " + reader;
    });
  }

  void run(graph::OpId op) {
    const auto all = oracle::touches(step_.graph, op);  // scratch comes last
    // A kernel may write results and scratch before its last read, and scratch to its end.
    for (const auto& touch : all)
      if (!touch.reads) write(touch.storage, touch.begin, touch.end);
    for (const auto& touch : all)
      if (touch.reads) read(touch.storage, touch.begin, touch.end, describe(step_.graph, op));
    for (const auto& touch : all)
      if (touch.writes) write(touch.storage, touch.begin, touch.end);
  }

  void evaluate(std::mt19937* random) {
    fill([](graph::StorageClass cls) { return cls == graph::StorageClass::input; });
    const auto& tasks = step_.schedule.tasks;
    std::vector<int> waits(tasks.size(), 0);
    std::vector<std::vector<std::size_t>> next(tasks.size());
    const auto add = [&](std::size_t before, std::size_t after) {
      next[before].push_back(after);
      ++waits[after];
    };
    for (std::size_t t = 0; t < tasks.size(); ++t)
      for (graph::TaskId before : tasks[t].predecessors) add(before.index, t);
    for (const TaskEdge& edge : plan_.reuse_edges) add(edge.before.index, edge.after.index);
    std::vector<std::size_t> ready;
    for (std::size_t t = 0; t < tasks.size(); ++t)
      if (waits[t] == 0) ready.push_back(t);
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      const auto at = random
                          ? ready.begin() + static_cast<std::ptrdiff_t>((*random)() % ready.size())
                          : std::min_element(ready.begin(), ready.end());
      const std::size_t task = *at;
      ready.erase(at);
      for (graph::OpId op : tasks[task].ops) run(op);
      for (std::size_t after : next[task])
        if (--waits[after] == 0) ready.push_back(after);
    }
    EXPECT_EQ(done, tasks.size()) << "a cycle of edges";
    for (graph::ValueId output : step_.graph.outputs) {
      const std::int64_t begin = step_.graph[output].offset;
      read(step_.graph.root(output), begin, begin + oracle::value_bytes(step_.graph, output),
           "the caller");
    }
  }

  const Step& step_;
  const StepPlan& plan_;
  std::map<Granule, graph::StorageId> owner_;
  std::string lost_;
};

inline std::string lost(const Step& step, const StepPlan& plan, int evaluations = 2) {
  return Replay(step, plan).lost(evaluations);
}

inline void expect_sound(const Step& step) {
  EXPECT_NO_THROW(verify_step(step.graph, step.schedule, step.plan));
  EXPECT_EQ(lost(step, step.plan), "");
}

inline void expect_refused(const Step& step, const StepPlan& plan, const std::string& words) {
  try {
    verify_step(step.graph, step.schedule, plan);
    ADD_FAILURE() << "accepted; expected: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

/// The verifier refuses the plan, and it does destroy `value`.
inline void expect_caught(const Step& step, const StepPlan& plan, const std::string& words,
                          const std::string& value) {
  expect_refused(step, plan, words);
  EXPECT_EQ(lost(step, plan).substr(0, value.size()), value);
}

}  // namespace arenite::plan
