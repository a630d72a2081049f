// Programs of small probing operators, for the tests of this room.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace arenite::runtime::testing {

using graph::Builder;
using graph::StorageClass;
using graph::ValueId;

/// Operators of the tests: `probe_add` adds one float to another and, asked to, waits or reports
/// first.
struct ProbeState {
  std::int64_t milliseconds = 0;
  float refused = 0;  ///< an input of this value is reported to the status word
};

inline void probe_add(const KernelCall& call, const ProbeState& state) {
  if (state.milliseconds > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(state.milliseconds));
  const float x = call.in<float>(0)[0];
  if (state.refused != 0 && x == state.refused) call.status->report(call.op, 7);
  if (call.workspace) static_cast<float*>(call.workspace)[0] = x;
  call.out<float>(0)[0] = x + call.in<float>(1)[0];
}

/// A float from an int64.
inline void probe_number(const KernelCall& call) {
  call.out<float>(0)[0] = static_cast<float>(call.in<std::int64_t>(0)[0]);
}

inline void register_probe() {
  static const bool once = [] {
    register_operator(
        {.name = "probe_add",
         .operands = {{"x"}, {"y"}},
         .results = {"sum"},
         .attributes = {{"milliseconds", graph::AttributeType::integer, std::int64_t{0}},
                        {"refused", graph::AttributeType::real, 0.0},
                        {"workspace", graph::AttributeType::integer, std::int64_t{0}}},
         .infer =
             [](const graph::OpView&) {
               return std::vector<graph::ResultType>{{DType::float32, Shape{1}}};
             },
         .fault =
             [](const graph::OpView&, std::uint32_t, std::span<const void* const>) {
               return ErrorText{.found = "an input that is refused",
                                .expected = "data within the op's limits"};
             }},
        {{.name = "plain",
          .workspace = [](const graph::OpView& op) { return op.integer("workspace"); },
          .prepare =
              [](const graph::OpView& op) {
                return prepared<probe_add>(
                    ProbeState{op.integer("milliseconds"), static_cast<float>(op.real("refused"))});
              }}});
    register_operator({.name = "probe_number",
                       .operands = {{"x"}},
                       .results = {"y"},
                       .infer =
                           [](const graph::OpView&) {
                             return std::vector<graph::ResultType>{{DType::float32, Shape{1}}};
                           }},
                      {{.name = "plain", .prepare = [](const graph::OpView&) -> PreparedKernel {
                          return {probe_number, nullptr};
                        }}});
    return true;
  }();
  static_cast<void>(once);
}

/// A program in the making: one op a task.
struct Draft {
  ProgramSpec spec;
  Builder builder{spec.graph, operators()};

  explicit Draft(std::string name) {
    register_probe();
    spec.name = std::move(name);
    builder.context = {.phase = Phase::forward, .lane = 0, .where = ""};
  }

  ValueId declare(const std::string& name, StorageClass cls) {
    return builder.declare(name, DType::float32, {1}, cls);
  }

  ProgramSpec finish(plan::StateLayout& state, double task_microseconds = 0) {
    graph::keep_state(spec.graph, operators());
    graph::select(spec.graph, *kernel_selector(kernels()));
    graph::TargetProfile model;
    model.task_microseconds = model.phase_microseconds = task_microseconds;
    spec.schedule = graph::coarsen(spec.graph, model);
    spec.plan = plan::plan_step(spec.graph, spec.schedule, state);
    return std::move(spec);
  }
};

/// total += input, through a slow op.
inline ProgramSpec summing(const std::string& name, plan::StateLayout& state,
                           std::int64_t milliseconds = 0, double refused = 0) {
  Draft draft(name);
  const ValueId x = draft.declare("x", StorageClass::input),
                zero = draft.declare("zero", StorageClass::buffer),
                total = draft.declare("total", StorageClass::buffer);
  const ValueId y = draft.builder.add1("probe_add", {x, zero},
                                       {{"milliseconds", milliseconds}, {"refused", refused}});
  draft.builder.add("accumulate", {total, y});
  return draft.finish(state);
}

template <class... Specs>
ProgramSet make_set(Session& session, Specs... specs) {
  std::vector<ProgramSpec> list;
  (list.push_back(std::move(specs)), ...);
  return ProgramSet(session, kernels(), std::move(list));
}

}  // namespace arenite::runtime::testing
