// What an op that differs by mode is in one.
#pragma once

#include <arenite/graph/operator.hpp>

#include <vector>

namespace arenite::graph {

/// What stands for its results: `OperatorDefinition::in_mode`, whose errors say which op it is.
std::vector<ValueId> made_in_mode(const Graph& graph, OpId id, ModeContext& context);

}  // namespace arenite::graph
