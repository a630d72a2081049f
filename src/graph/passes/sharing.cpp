#include "src/graph/passes/sharing.hpp"

#include <arenite/graph/dependencies.hpp>

#include <algorithm>

namespace arenite::graph {

Sharing::Sharing(Graph& graph)
    : graph_(graph),
      pinned_(graph.storage_count(), false),
      values_(graph.storage_count()),
      uses_(graph.value_count()),
      nesting_(graph) {
  for (ValueId output : graph.outputs) pinned_[graph.root(output).index] = true;
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (graph.storage(StorageId(i)).cls == StorageClass::output)
      pinned_[graph.root(StorageId(i)).index] = true;
  }
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    values_[graph.root(ValueId(i)).index].emplace_back(i);
  for (std::size_t i = 0; i < graph.region_count(); ++i) {
    const auto& ops = graph[RegionId(i)].ops;
    for (std::size_t at = 0; at < ops.size(); ++at) {
      for_each_named(graph, ops[at], [&](ValueId value) {
        uses_[value.index].push_back({RegionId(i), at});
      });
    }
  }
}

void Sharing::merge(StorageId from, StorageId into) {
  graph_.merge(from, into);
  auto &moved = values_[from.index], &there = values_[into.index];
  there.insert(there.end(), moved.begin(), moved.end());
  moved.clear();
}

bool Sharing::made_inside(RegionId region, ValueId value) const {
  return std::ranges::all_of(values_[graph_.root(value).index], [&](ValueId id) {
    RegionId at = nesting_.region_of(id);
    while (at && at != region) at = nesting_.around(at);
    return bool(at);
  });
}

bool Sharing::made_on_side(ValueId value, ValueId condition, std::size_t side) const {
  return std::ranges::all_of(values_[graph_.root(value).index],
                             [&](ValueId id) { return nesting_.on_side(id, condition, side); });
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
