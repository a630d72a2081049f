// What a step's planner and the problems it solves agree on.
#pragma once

#include <arenite/plan/step_plan.hpp>

#include <vector>

#include "src/plan/step_usage.hpp"

namespace arenite::plan {

/// Calls f(id, storage) for each storage that is merged into no other.
template <class F>
void for_each_root(const graph::Graph& graph, F f) {
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    const graph::StorageId id(i);
    if (graph.root(id) == id) f(id, graph.storage(id));
  }
}

bool is_default(const Space& space);

/// The default space first; it is there even where nothing lives in it. Throws Error where two
/// differ in their capacity only.
std::vector<Space> spaces_of(const graph::Graph& graph);

/// Written in forward, still read in backward.
bool is_saved(const graph::Storage& storage, const Usage& usage);

/// As the public one, for those who know the usages already.
std::vector<StepProblem> step_problems(const graph::Graph& graph, const graph::Schedule& schedule,
                                       const std::vector<Usage>& usages,
                                       const StepOptions& options);

}  // namespace arenite::plan
