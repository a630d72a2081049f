// Sizes that only a run decides: the samples of a batch, the length of a sequence.
//
//   $1 = InputTensor(x, float32, [rows<=64, 784]);
//
// A dimension of a declared value may have a name. Its shape holds the upper bound, so that every
// shape that follows is inferred at it, and whatever is planned holds for each smaller size. A name
// stands for one size wherever it occurs. What outlives a step (parameters, optimizer state,
// buffers) has no such dimension.
//
//   $2 = reshape($1, [rows, 28, 28]);
//
// Numbers of attributes may be sizes too: the graph then has the name beside the number, which is
// the bound. A plain number stays what it is: a `reshape` to [64, 28, 28] fits no other number of
// rows, and a loss divided by 64 still is at 40. Gradients are made after the sizes are given, for
// their rules put shapes into attributes.
#pragma once

#include <arenite/graph/graph.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace arenite::graph {

struct RunTimeSize {
  std::string name;
  std::int64_t bound = 0;

  friend bool operator==(const RunTimeSize&, const RunTimeSize&) = default;
};

/// All of them, in the order of their first mention.
std::vector<RunTimeSize> run_time_sizes(const Graph& graph);

/// Names a dimension of a declared value; its size becomes the name's upper bound. Throws Error
/// where `verify` would.
void name_size(Graph& graph, ValueId declared, int axis, std::string name);

/// By name; each from 1 to its bound.
using SizeValues = std::map<std::string, std::int64_t, std::less<>>;

/// Lets the graph hold for its bounds: attributes are plain numbers then. For graphs that are
/// planned with sizes left open.
void fix_attributes(Graph& graph);

/// The graph of a run in which the named sizes have these values; those not given stay at large.
/// The same ids, shapes by the operators' rules. For graphs before gradients and `select`. Throws
/// Error on an unknown name, a size out of bounds, an op whose rule refuses the sizes, an op of
/// phase backward where one is smaller than its bound, and a value that would need more bytes than
/// at the bounds.
Graph at_sizes(const Graph& graph, const SizeValues& sizes);
/// The graph in which these are the bounds, and no larger than they were: the sizes stay open.
Graph at_bounds(const Graph& graph, const SizeValues& bounds);

}  // namespace arenite::graph
