// Whether an op's regions leave the bytes alone that others of its values still need.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/plan/step_plan.hpp>

#include <span>
#include <vector>

namespace arenite::plan {

/// Runs the op on states instead of values: every storage is unborn, valid or clobbered, a write
/// clobbers all that shares a byte with it, and a read of what is clobbered is a flaw. Both blocks
/// of an `if` are run and their states met; loops run until the states in front of them no longer
/// change. This is the definition of a sound plan, and shares nothing with liveness.cpp.
///
/// place_of has the place of each root storage, or null. `held` says of each whether it holds bytes
/// when the op begins that count (an op before wrote it), `needed` whether an op after it, or the
/// caller, reads it. Throws Error that names the storages.
void verify_regions(const graph::Graph& graph, graph::OpId op,
                    std::span<const Placement* const> place_of, const std::vector<bool>& held,
                    const std::vector<bool>& needed);

}  // namespace arenite::plan
