// What is linear in sums over samples: a loss that is scaled, or added to another one.
#pragma once

#include <arenite/graph/graph.hpp>

#include <vector>

namespace arenite::graph {

class BatchForms;

/// By value: a sum over the batch's samples, or what ops make of such sums and of values that have
/// nothing to do with the batch, if that is linear in the sums: what each part of the batch makes
/// of its own terms then adds up to it. (To a rounding.)
std::vector<bool> linear_in_sums(const Graph& graph, const BatchForms& forms);

/// The ops between sums and a value that is linear in them, in program order.
std::vector<OpId> ops_from_sums(const Graph& graph, const BatchForms& forms, ValueId value);

}  // namespace arenite::graph
