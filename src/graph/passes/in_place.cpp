#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/verify.hpp>

#include "src/graph/passes/sharing.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

/// One region's ops: results take the bytes of operands that live and die in it.
class InPlace {
 public:
  InPlace(Graph& graph, Sharing& sharing, RegionId region)
      : graph_(graph),
        sharing_(sharing),
        region_(region),
        ops_(graph[region].ops),
        last_(last_access()) {}

  int run() {
    int merged = 0;
    for (std::size_t at = 0; at < ops_.size(); ++at) {
      const Op& op = graph_[ops_[at]];
      for (const auto& [result, operand] : op.definition->in_place) {
        if (operand >= op.operands.size() || !op.operands[operand]) continue;
        if (!may_take(at, op.results[result], op.operands[operand])) continue;
        const StorageId source = graph_.root(op.results[result]);
        const StorageId target = graph_.root(op.operands[operand]);
        sharing_.merge(source, target);
        last_[target.index] = last_[source.index];
        ++merged;
        break;
      }
    }
    return merged;
  }

 private:
  /// Position in program order of the last op that names a value in each storage.
  std::vector<std::size_t> last_access() const {
    std::vector<std::size_t> last(graph_.storage_count(), 0);
    for (std::size_t at = 0; at < ops_.size(); ++at) {
      for_each_named(graph_, ops_[at], [&](ValueId id) { last[graph_.root(id).index] = at; });
    }
    for (ValueId yielded : graph_[region_].results) {
      if (yielded) last[graph_.root(yielded).index] = ops_.size();
    }
    return last;
  }

  bool may_take(std::size_t at, ValueId from, ValueId into) const {
    const StorageId target = graph_.root(into);
    // Another operand may be a view of the same bytes.
    const auto& operands = graph_[ops_[at]].operands;
    const auto readers = std::count_if(operands.begin(), operands.end(),
                                       [&](ValueId id) { return id && graph_.root(id) == target; });
    // Values from outside a region are not its own to overwrite.
    return last_[target.index] == at && readers == 1 && sharing_.fits(from, into) &&
           (region_ == Graph::body || sharing_.made_inside(region_, into));
  }

  Graph& graph_;
  Sharing& sharing_;
  const RegionId region_;
  const std::vector<OpId> ops_;
  std::vector<std::size_t> last_;
};

}  // namespace

int in_place(Graph& graph) {
  Sharing sharing(graph);
  int merged = 0;
  for (std::size_t i = 0; i < graph.region_count(); ++i)
    merged += InPlace(graph, sharing, RegionId(i)).run();
  if (graph.region_count() > 1) merged += join_handovers(graph) + join_sides(graph);
  verify(graph);
  return merged;
}

}  // namespace arenite::graph
