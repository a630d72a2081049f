#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>

namespace arenite::graph {
namespace {

/// Position in program order of the last op that touches each storage or names a value in it.
std::vector<std::size_t> last_access(const Graph& graph) {
  std::vector<std::size_t> last(graph.storage_count(), 0);
  const auto& ops = graph[Graph::body].ops;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    for (const auto& access : accesses(graph, ops[at])) last[access.storage.index] = at;
    // A view that nobody reads, or of no bytes, touches nothing, but may not be taken of a value
    // that is gone.
    for (ValueId operand : graph[ops[at]].operands) {
      if (operand) last[graph.root(operand).index] = at;
    }
  }
  return last;
}

bool covers_storage(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  return value.offset == 0 &&
         byte_size(value.type, value.shape, value.layout) == graph.root_storage(id).bytes;
}

}  // namespace

int in_place(Graph& graph) {
  std::vector<std::size_t> last = last_access(graph);
  std::vector<bool> pinned(graph.storage_count(), false);
  for (ValueId output : graph.outputs) pinned[graph.root(output).index] = true;
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    if (graph.storage(StorageId(i)).cls == StorageClass::output)
      pinned[graph.root(StorageId(i)).index] = true;
  }

  int merged = 0;
  const auto& ops = graph[Graph::body].ops;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const Op& op = graph[ops[at]];
    for (const auto& [result, operand] : op.definition->in_place) {
      if (operand >= op.operands.size() || !op.operands[operand]) continue;
      const ValueId from = op.results[result], into = op.operands[operand];
      const StorageId source = graph.root(from), target = graph.root(into);
      const StorageClass cls = graph.storage(target).cls;
      const bool transient = cls == StorageClass::activation || cls == StorageClass::gradient;
      // Another operand may be a view of the same bytes.
      const auto readers = std::count_if(op.operands.begin(), op.operands.end(), [&](ValueId id) {
        return id && graph.root(id) == target;
      });
      if (source == target || !transient || !is_transient(graph.storage(source).cls) ||
          pinned[target.index] || pinned[source.index] || last[target.index] != at ||
          readers != 1 || !covers_storage(graph, into) || !covers_storage(graph, from) ||
          graph[from].layout != graph[into].layout ||
          graph.storage(source).bytes != graph.storage(target).bytes) {
        continue;
      }
      graph.merge(source, target);
      last[target.index] = last[source.index];
      ++merged;
      break;
    }
  }
  verify(graph);
  return merged;
}

}  // namespace arenite::graph
