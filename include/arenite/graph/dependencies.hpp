// Which bytes each op touches, and which ops it therefore has to follow.
//
//   graph::Dependencies order = graph::dependencies(graph);
//   for (graph::OpId before : order.of(op)) …          // has to end before `op` begins
//
// The planner, its verifier and the runtime all take their edges from here. Pure functions of a
// verified graph: safe from any thread; they allocate their results.
#pragma once

#include <arenite/graph/graph.hpp>

#include <span>
#include <vector>

namespace arenite::graph {

/// Bytes [offset, offset + bytes) of a root storage that one op touches. A value counts with its
/// halo, for whoever writes a value writes its halo too.
struct Access {
  StorageId storage;  ///< a root, see Graph::root
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool reads = false;
  bool writes = false;

  friend bool operator==(const Access&, const Access&) = default;
};

/// True when all results of the op are views: it has no kernel, runs nothing, touches nothing.
bool is_view_op(const Graph& graph, OpId op);

/// True when the value is all that its root storage holds.
bool fills_storage(const Graph& graph, ValueId value);

/// Everything the op reads and writes: operands as reads, results and workspace as writes, and for
/// a region op whatever the ops inside it touch. Sorted by (storage, offset, bytes); the same range
/// is listed once, so `x + x` reads x once. Empty for view ops; values of no bytes are left out.
std::vector<Access> accesses(const Graph& graph, OpId op);

/// The order that program order and bytes demand of the ops of a region. Reads commute;
/// everything else that meets in a byte keeps its program order: read after write, write after
/// read, write after write. Edges of write after write that follow from the readers in between are
/// left out. Whoever reads a value of no bytes follows the op that made it, too: such a value says
/// that something has been done.
struct Dependencies {
  std::vector<OpId> ops;                        ///< the region's, in program order, view ops too
  std::vector<std::vector<OpId>> predecessors;  ///< by OpId::index; each list ascending, no doubles

  /// The ops that `op` has to follow directly. Empty for view ops and ops of other regions.
  std::span<const OpId> of(OpId op) const { return predecessors.at(op.index); }
  std::size_t edge_count() const noexcept;
};

/// O(n log n) in accesses and edges for graphs whose views split a storage in a bounded number of
/// parts.
Dependencies dependencies(const Graph& graph, RegionId region = Graph::body);

}  // namespace arenite::graph
