// Appends values and ops to a graph; infers shapes, checks operands and attributes as it goes.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/operator.hpp>

#include <unordered_set>

namespace arenite::graph {

/// Defaults for the ops a builder appends.
struct OpContext {
  Phase phase = Phase::forward;
  int lane = Op::shared_lane;
  std::string where;
};

class Builder {
 public:
  /// Both must outlive the builder.
  Builder(Graph& graph, const OperatorTable& table) : graph_(&graph), table_(&table) {}

  Graph& graph() noexcept { return *graph_; }
  const Graph& graph() const noexcept { return *graph_; }
  const OperatorTable& table() const noexcept { return *table_; }

  /// Declares a value without a producer: a parameter, an input, a constant, … A name is
  /// its own within the class; throws Error otherwise.
  ValueId declare(std::string name, DType type, Shape shape, StorageClass cls, Space space = {});

  /// Appends an op; throws Error on an unknown operator, wrong operands, attributes or shapes. An
  /// op that holds regions takes those that begin_region and end_region made.
  std::vector<ValueId> add(std::string_view op, std::vector<ValueId> operands,
                           Attributes attributes = {}, std::vector<RegionId> regions = {});
  std::vector<ValueId> add(std::shared_ptr<const OperatorDefinition> op,
                           std::vector<ValueId> operands, Attributes attributes = {},
                           std::vector<RegionId> regions = {});
  /// The same for an op with exactly one result.
  ValueId add1(std::string_view op, std::vector<ValueId> operands, Attributes attributes = {});

  /// Begins region number `index` of an op that will be added with these operands and attributes:
  /// until end_region, ops are appended to it. Its parameters are graph()[id].parameters. Regions
  /// may nest. Throws Error, and begins nothing, where `add` would, and below max_region_depth.
  RegionId begin_region(std::string_view op, const std::vector<ValueId>& operands,
                        const Attributes& attributes = {}, std::size_t index = 0);
  /// Ends the innermost region, which yields these values.
  void end_region(std::vector<ValueId> results);
  bool in_region() const noexcept { return !open_.empty(); }

  /// Phase, lane and origin that the next ops get.
  OpContext context;

  /// Storage class of the values that the next ops produce (activation in forward, gradient in
  /// backward).
  StorageClass result_class() const noexcept;

 private:
  Graph* graph_;
  const OperatorTable* table_;

  bool name_taken(StorageClass cls, const std::string& name);
  template <class Rule>
  auto within(const OperatorDefinition& definition, Rule rule) const;
  Op begin(std::shared_ptr<const OperatorDefinition> op, std::vector<ValueId> operands,
           const Attributes& attributes) const;

  std::unordered_set<std::string> names_;  // of declared values among the first `indexed_`
  std::size_t indexed_ = 0;
  std::vector<RegionId> open_;  // regions, innermost last
};

}  // namespace arenite::graph
