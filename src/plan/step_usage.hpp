// Who touches a storage in a step, and which storages are therefore done before which.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/plan/problem.hpp>

#include <optional>
#include <span>
#include <vector>

#include "src/plan/task_order.hpp"

namespace arenite::plan {

/// One task's accesses of a storage: the first and the last of its steps that need it. An op is a
/// step, one with regions several (see graph/liveness.hpp). A task has two of them where such an op
/// leaves the storage dead for some of its steps, and all other users come before the op or after
/// it: a gap.
struct TaskUse {
  std::size_t task = 0, first = 0, last = 0;
};

/// Everything the planner asks about one root storage.
struct Usage {
  std::vector<TaskUse> tasks;  // ascending, then by step
  std::optional<Phase> first_phase;
  bool backward = false;  // accessed in backward or update
  bool output = false;    // a caller reads it after the step

  /// The tasks between gaps, ascending.
  std::vector<std::span<const TaskUse>> pieces() const;

  bool in_backward_arena() const {
    return first_phase == Phase::backward || first_phase == Phase::update;
  }
};

/// By task: steps of the tasks before it.
std::vector<std::size_t> steps_before(const graph::Graph& graph, const graph::Schedule& schedule);

/// By storage; those of no root are empty.
std::vector<Usage> usages(const graph::Graph& graph, const graph::Schedule& schedule);

/// i before j iff every access of piece i happens before every access of piece j. Each piece has at
/// least one. O(n²) bit tests and the sum of all rows.
Precedence precedence(std::span<const std::span<const TaskUse>> pieces, const TaskOrder& order);

}  // namespace arenite::plan
