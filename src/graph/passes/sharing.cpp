#include "src/graph/passes/sharing.hpp"

#include <arenite/graph/dependencies.hpp>

namespace arenite::graph {

Sharing::Sharing(const Graph& graph)
    : graph_(graph), pinned_(graph.storage_count(), false), nesting_(graph) {
  for (ValueId output : graph.outputs) pinned_[graph.root(output).index] = true;
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (graph.storage(StorageId(i)).cls == StorageClass::output)
      pinned_[graph.root(StorageId(i)).index] = true;
  }
}

bool Sharing::made_inside(RegionId region, ValueId value) const {
  const StorageId root = graph_.root(value);
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    if (graph_.root(ValueId(i)) != root) continue;
    RegionId at = nesting_.region_of(ValueId(i));
    while (at && at != region) at = nesting_.around(at);
    if (!at) return false;
  }
  return true;
}

bool Sharing::made_on_side(ValueId value, ValueId condition, std::size_t side) const {
  const StorageId root = graph_.root(value);
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    if (graph_.root(ValueId(i)) == root && !nesting_.on_side(ValueId(i), condition, side))
      return false;
  }
  return true;
}

bool Sharing::is_working(ValueId value) const {
  const StorageClass cls = graph_.root_storage(value).cls;
  return cls == StorageClass::activation || cls == StorageClass::gradient;
}

bool Sharing::fits(ValueId from, ValueId into) const {
  return !holds_output(into) && becomes(from, into);
}

bool Sharing::becomes(ValueId from, ValueId into) const {
  const Storage &source = graph_.root_storage(from), &target = graph_.root_storage(into);
  return graph_.root(from) != graph_.root(into) && is_working(into) && is_transient(source.cls) &&
         !holds_output(from) && fills_storage(graph_, from) && fills_storage(graph_, into) &&
         graph_[from].layout == graph_[into].layout && source.bytes == target.bytes &&
         source.space == target.space;
}

}  // namespace arenite::graph
