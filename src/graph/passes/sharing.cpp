#include "src/graph/passes/sharing.hpp"

#include <arenite/graph/dependencies.hpp>

namespace arenite::graph {

Sharing::Sharing(const Graph& graph)
    : graph_(graph),
      pinned_(graph.storage_count(), false),
      region_of_op_(graph.op_count()),
      around_(graph.region_count()) {
  for (ValueId output : graph.outputs) pinned_[graph.root(output).index] = true;
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (graph.storage(StorageId(i)).cls == StorageClass::output)
      pinned_[graph.root(StorageId(i)).index] = true;
  }
  for (std::size_t i = 0; i < graph.region_count(); ++i) {
    for (OpId op : graph[RegionId(i)].ops) {
      region_of_op_[op.index] = RegionId(i);
      for (RegionId inner : graph[op].regions) around_[inner.index] = RegionId(i);
    }
  }
}

RegionId Sharing::region_of(ValueId id) const {
  const Value& value = graph_[id];
  if (value.parameter_of) return value.parameter_of;
  return value.producer ? region_of(value.producer) : Graph::body;
}

bool Sharing::made_inside(RegionId region, ValueId value) const {
  const StorageId root = graph_.root(value);
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    if (graph_.root(ValueId(i)) != root) continue;
    RegionId at = region_of(ValueId(i));
    while (at && at != region) at = around_[at.index];
    if (!at) return false;
  }
  return true;
}

bool Sharing::fits(ValueId from, ValueId into) const {
  return !holds_output(into) && becomes(from, into);
}

bool Sharing::becomes(ValueId from, ValueId into) const {
  const Storage &source = graph_.root_storage(from), &target = graph_.root_storage(into);
  const bool working =
      target.cls == StorageClass::activation || target.cls == StorageClass::gradient;
  return graph_.root(from) != graph_.root(into) && working && is_transient(source.cls) &&
         !holds_output(from) && fills_storage(graph_, from) && fills_storage(graph_, into) &&
         graph_[from].layout == graph_[into].layout && source.bytes == target.bytes &&
         source.space == target.space;
}

}  // namespace arenite::graph
