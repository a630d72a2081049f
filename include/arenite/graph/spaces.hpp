// Which space each op runs in. A value lives in exactly one.
#pragma once

#include <arenite/graph/graph.hpp>

namespace arenite::graph {

/// Where an op runs: on the device whose memory it touches, of several on that of its results; on
/// the host where it touches none.
Space space_of(const Graph& graph, const Op& op);

/// What names of the same thing in several spaces end in: "@cuda:0/device".
std::string suffix(const Space& space);

/// The operator that makes a copy of a value, which may live in another space.
inline constexpr const char* copy_operator = "identity";

/// Some values of the op live in another space than others.
bool is_crossing(const Graph& graph, const Op& op);

/// What programs ask for: each op touches one space only, unless it is a copy, and those in blocks
/// the host's. `place` makes it so. Throws Error that names the op.
void check_spaces(const Graph& graph);

/// It only refills inputs from constants and other inputs, and has no workspace: it touches nothing
/// that a step before may still use.
bool is_staging(const Graph& graph, OpId op);

}  // namespace arenite::graph
