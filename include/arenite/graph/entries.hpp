// Entries: other ways to run a graph than its outputs and its training.
//
//   entry predict = $9;
//   entry decode(keeps=[$10]) = $9, $12;
//   entry sample(mode=train) = $9;
//   entry best(averaged) = $9;
//
// An entry has outputs of its own, and runs what these need and nothing else: labels that only a
// loss reads are no inputs of `predict`. It is an evaluation, unless it says that ops that differ
// by mode are what they are in training. Of what persists it makes the new versions that its
// outputs are made of, and those that it says it keeps. Averaged, it computes with the means of
// parameters.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/operator.hpp>

#include <string_view>
#include <vector>

namespace arenite::graph {

/// Throws Error unless an entry of the graph may have this name: not empty, none that every graph
/// has (train, accumulate, evaluate,
/// averaged), and no other entry's.
void check_entry_name(const Graph& graph, std::string_view name);

/// The graph of an entry, and it alone: all declared values, and the ops that it needs. Throws
/// Error on an entry that there is not, on a value to be kept that is no new version of what
/// persists, and on means where training keeps none.
Graph at_entry(const Graph& graph, const OperatorTable& table, std::string_view name);

/// Declared inputs that an op reads, or that are outputs, in the order of their declarations.
std::vector<ValueId> inputs_read(const Graph& graph);

}  // namespace arenite::graph
