// Where values are made: in which region, and on which side of the `if`s around them.
#pragma once

#include <arenite/graph/graph.hpp>

#include <utility>
#include <vector>

namespace arenite::graph {

/// Appends a region's ops, and behind each those that it holds.
void add_nested_ops(const Graph& graph, RegionId region, std::vector<OpId>& all);

/// Facts that merges of storages leave as they are. Building it takes time in the graph's size.
class Nesting {
 public:
  explicit Nesting(const Graph& graph);

  /// The region that an op stands in.
  RegionId region_of(OpId op) const { return region_of_op_.at(op.index); }
  /// Among the ops of its region.
  std::size_t position_of(OpId op) const { return position_.at(op.index); }
  /// Produced, or a parameter of; the body for declared values.
  RegionId region_of(ValueId value) const;
  /// The op that holds a region; none for the body.
  OpId holder(RegionId region) const { return holder_.at(region.index).first; }
  /// The region that a region's holder stands in; none for the body.
  RegionId around(RegionId region) const;

  /// The op stands in a block of an `if` on this condition.
  bool within_branch_on(OpId op, ValueId condition) const;
  /// Made only where this condition goes to this block of an `if`.
  bool on_side(ValueId value, ValueId condition, std::size_t side) const;
  /// Never there at the same time: one is made where a condition goes one way, the other where it
  /// goes the other way.
  bool exclude(ValueId a, ValueId b) const;
  /// Nothing that may be there beside the value reaches beyond it in the bytes they share: who
  /// writes it writes all there is. (Looks at every value of the graph where the value does not
  /// fill its storage.)
  bool covers_storage(ValueId value) const;

 private:
  using Side = std::pair<ValueId, std::size_t>;  // condition, and which block

  /// Those that a value is made on.
  std::vector<Side> sides(ValueId value) const;

  const Graph& graph_;
  std::vector<RegionId> region_of_op_;
  std::vector<std::size_t> position_;                 // by op
  std::vector<std::pair<OpId, std::size_t>> holder_;  // by region; none for the body
};

}  // namespace arenite::graph
