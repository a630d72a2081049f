// What passes that let values share bytes ask of a graph.
#pragma once

#include <arenite/graph/graph.hpp>

#include <vector>

#include "src/graph/nesting.hpp"

namespace arenite::graph {

/// Calls f(value) for all that an op names, itself or in its regions: a view that nobody reads
/// touches nothing, but may not be taken of a value that is gone.
template <class F>
void for_each_named(const Graph& graph, OpId id, const F& f) {
  const auto visit = [&](const std::vector<ValueId>& list) {
    for (ValueId value : list) {
      if (value) f(value);
    }
  };
  const Op& op = graph[id];
  visit(op.operands);
  visit(op.results);
  if (op.workspace) f(op.workspace);
  for (RegionId region : op.regions) {
    visit(graph[region].parameters);
    for (OpId inner : graph[region].ops) for_each_named(graph, inner, f);
    visit(graph[region].results);
  }
}

/// What shares bytes, and where it is named, by an index: merges go through it.
class Sharing {
 public:
  explicit Sharing(Graph& graph);

  /// Lets what lives in one root storage live in another.
  void merge(StorageId from, StorageId into);

  /// Calls f(position) for the ops of a region, by position, that name a value of the root storage,
  /// themselves or in regions of theirs; some more than once, in no order.
  template <class F>
  void each_use(StorageId root, RegionId region, F f) const {
    for (ValueId value : values_[root.index]) {
      for (const Use& use : uses_[value.index]) {
        if (use.region == region) f(use.position);
      }
    }
  }

  const Nesting& nesting() const noexcept { return nesting_; }
  /// All that shares the value's bytes is made in the region, or in regions of its ops.
  bool made_inside(RegionId region, ValueId value) const;
  /// All that shares the value's bytes is made where the condition goes to this block of an `if`.
  bool made_on_side(ValueId value, ValueId condition, std::size_t side) const;

  /// `from` may move into the bytes of `into`, as far as their storages go: both transient, neither
  /// read by a caller, each alone in its storage but for what shares it already, of one layout,
  /// size and space.
  bool fits(ValueId from, ValueId into) const;
  /// The same for a value that is handed over to `into`, which may be an output.
  bool becomes(ValueId from, ValueId into) const;
  /// An activation or a gradient: for the planner to place.
  bool is_working(ValueId value) const;
  /// A caller reads some of the bytes after the step.
  bool holds_output(ValueId value) const { return pinned_[graph_.root(value).index]; }

 private:
  struct Use {
    RegionId region;
    std::size_t position;
  };

  Graph& graph_;
  std::vector<bool> pinned_;                  // by storage
  std::vector<std::vector<ValueId>> values_;  // by root storage
  std::vector<std::vector<Use>> uses_;        // by value; in each region around them
  const Nesting nesting_;
};

}  // namespace arenite::graph
