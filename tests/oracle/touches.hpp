// Which bytes an op touches, from what its operands and results are: without graph::accesses, which
// the planner and the runtime trust.
#pragma once

#include <arenite/graph/operator.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace arenite::oracle {

/// Bytes [begin, end) of a root storage.
struct Touch {
  graph::StorageId storage;
  std::int64_t begin = 0, end = 0;
  bool reads = false, writes = false;
};

inline std::int64_t value_bytes(const graph::Graph& graph, graph::ValueId id) {
  const graph::Value& value = graph[id];
  return graph::byte_size(value.type, value.shape, value.layout);
}

inline bool is_view(const graph::Graph& graph, const graph::Op& op, std::size_t result) {
  return op.definition->views &&
         op.definition->views(graph::OpView(graph, op)).at(result).has_value();
}

/// One entry an operand, result and workspace that has bytes, in this order.
inline std::vector<Touch> touches(const graph::Graph& graph, graph::OpId id) {
  const graph::Op& op = graph[id];
  std::vector<Touch> all;
  const auto add = [&](graph::ValueId value, bool reads, bool writes) {
    if (!value || value_bytes(graph, value) == 0) return;
    const std::int64_t begin = graph[value].offset;
    all.push_back({graph.root(value), begin, begin + value_bytes(graph, value), reads, writes});
  };
  for (const graph::ValueId operand : op.operands) add(operand, true, false);
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (!is_view(graph, op, i)) add(op.results[i], false, true);
  }
  add(op.workspace, false, true);
  return all;
}

/// Whether somebody looks at the storage after the step.
inline bool is_observed(const graph::Graph& graph, graph::StorageId root) {
  if (graph::is_persistent(graph.storage(root).cls)) return true;
  if (graph.storage(root).cls == graph::StorageClass::output) return true;
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](graph::ValueId id) { return graph.root(id) == root; });
}

}  // namespace arenite::oracle
