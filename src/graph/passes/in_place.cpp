#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include "src/graph/passes/obstacle.hpp"
#include "src/graph/passes/sharing.hpp"
#include "src/graph/passes/verify_pass.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <utility>

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

  int run(Remarks* remarks) {
    int merged = 0;
    for (std::size_t at = 0; at < ops_.size(); ++at) {
      const Op& op = graph_[ops_[at]];
      std::vector<ValueId> settled;  // results that lie in operands, and these
      const auto is_settled = [&](ValueId id) {
        return std::ranges::find(settled, id) != settled.end();
      };
      for (const auto& [result, operand] : pairs_in_place(graph_, op)) {
        const ValueId into = op.operands[operand];
        if (is_settled(op.results[result]) || is_settled(into)) continue;
        const Obstacle why = apart(at, op.results[result], into);
        // An operand is named once, of the first result.
        note(
            why && result > 0 ? nullptr : remarks, graph_, why,
            [&] { return describe(graph_, ops_[at]); },
            [&] { return "in the bytes of " + name_of(graph_, into); });
        if (why) continue;
        StorageId from = graph_.root(op.results[result]), to = graph_.root(into);
        const std::size_t last = last_[from.index];
        // What a caller reads stays where it is, and what it is made of comes there.
        if (sharing_.holds_output(op.results[result])) std::swap(from, to);
        sharing_.merge(from, to);
        last_[to.index] = last;
        settled.insert(settled.end(), {op.results[result], into});
        ++merged;
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

  Obstacle apart(std::size_t at, ValueId from, ValueId into) const {
    const StorageId target = graph_.root(into);
    if (graph_.root(from) == target) return not_meant;  // a new version, which is there already
    // Another operand may be a view of the same bytes.
    const auto& operands = graph_[ops_[at]].operands;
    const auto readers = std::count_if(operands.begin(), operands.end(),
                                       [&](ValueId id) { return id && graph_.root(id) == target; });
    const std::size_t last = last_[target.index];
    if (last == ops_.size()) return {.words = "%v is what its block yields", .value = into};
    if (last != at) return {.words = "%o needs %v later", .value = into, .op = ops_[last]};
    if (readers != 1) return {.words = "another operand lies in %v as well", .value = into};
    if (sharing_.holds_output(into)) return {.words = "%v is an output", .value = into};
    if (!sharing_.is_working(into)) {
      return {.words = "%v is of class %t",
              .value = into,
              .name = to_string(graph_.root_storage(into).cls)};
    }
    if (sharing_.holds_output(from) ? !sharing_.becomes(into, from) : !sharing_.fits(from, into))
      return {.words = "%v and the result are not of one size and place", .value = into};
    // Values from outside a region are not its own to overwrite.
    if (region_ != Graph::body && !sharing_.made_inside(region_, into))
      return {.words = "%v is made outside of the block", .value = into};
    return {};
  }

  Graph& graph_;
  Sharing& sharing_;
  const RegionId region_;
  const std::vector<OpId> ops_;
  std::vector<std::size_t> last_;
};

}  // namespace

int in_place(Graph& graph, Remarks* remarks) {
  Sharing sharing(graph);
  int merged = 0;
  for (std::size_t i = 0; i < graph.region_count(); ++i)
    merged += InPlace(graph, sharing, RegionId(i)).run(remarks);
  if (graph.region_count() > 1) merged += join_handovers(graph) + join_sides(graph);
  verify_pass(graph);
  return merged;
}

}  // namespace arenite::graph
