// Who reads what in a graph, for passes that move ops or let values vanish.
#pragma once

#include <arenite/graph/dependencies.hpp>

#include <span>
#include <vector>

#include "src/graph/nesting.hpp"
#include "src/graph/passes/obstacle.hpp"

namespace arenite::graph {

class Readers {
 public:
  explicit Readers(const Graph& graph);

  struct Reader {
    OpId op;
    bool in_block = false;  ///< a block that the op holds reads or yields it, at any depth
  };

  /// The ops of the value's own region that read it: once for each operand, and for each reader in
  /// their blocks.
  const std::vector<Reader>& of(ValueId id) const { return readers_.at(id.index); }
  /// Nothing where the op, of the value's own region, reads it as one of its operands and nobody
  /// else does, and its storage is an activation's or a gradient's that nobody asked to last.
  Obstacle only_for(ValueId id, OpId reader) const;
  /// How others see the value: as an output, the loss, or what a block yields.
  Obstacle taken(ValueId id) const { return {.words = taken_.at(id.index), .value = id}; }
  bool unused(ValueId id) const { return of(id).empty() && taken_.at(id.index) == nullptr; }

  /// The first op that stands between two of a region, is none of `except`, and makes a new version
  /// of what the reader reads, itself or in its blocks; none where the reader may as well stand at
  /// `last`, and still not keep the version from the old one's bytes.
  OpId renewer(OpId reader, OpId first, OpId last, std::span<const OpId> except = {}) const;
  /// The same as what stands against it.
  Obstacle moved(OpId reader, OpId first, OpId last, std::span<const OpId> except = {}) const;

  const Nesting& nesting() const noexcept { return nesting_; }

 private:
  void note(ValueId id, OpId op, RegionId region);

  const Graph& graph_;
  const Nesting nesting_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<const char*> taken_;  ///< by value: how others see it; none: nobody does
};

/// What an op touches; it counts as writing what it makes new versions of, for they may come to lie
/// there.
std::vector<Access> touched(const Graph& graph, OpId id);

/// Whether an op reads what an update makes a new version of.
bool reads_renewed(const Graph& graph, OpId reader, OpId update);

/// Whether one of them writes bytes that the other touches.
bool in_the_way(const Access& a, const Access& b);

/// The root storages that an op or one of its blocks names, with whether they are written; of
/// results those that are made in place.
template <class F>
void for_each_root(const Graph& graph, OpId id, const F& f) {
  const Op& op = graph[id];
  for (const ValueId operand : op.operands) {
    if (operand) f(graph.root(operand), false);
  }
  for (ValueId result : op.results) {
    if (const StorageId root = graph.root(result); root != graph[result].storage) f(root, true);
  }
  for (RegionId region : op.regions) {
    for (OpId inner : graph[region].ops) for_each_root(graph, inner, f);
    for (ValueId yielded : graph[region].results) {
      if (yielded) f(graph.root(yielded), false);
    }
  }
}

}  // namespace arenite::graph
