#include <arenite/graph/regions.hpp>

#include "src/graph/passes/sharing.hpp"
#include "src/graph/values.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

class Joiner {
 public:
  Joiner(Graph& graph, Sharing& sharing) : graph_(graph), sharing_(sharing) {}

  int run() {
    std::vector<OpId> ops = nested_ops(graph_);
    std::reverse(ops.begin(), ops.end());  // what an op holds before the op
    for (OpId id : ops) {
      if (graph_[id].definition->control == Control::branch) join_branch(id);
      if (graph_[id].definition->control == Control::loop) join_loop(id);
      const std::int64_t staged = staging_bytes(graph_, graph_[id]);
      if (staged > 0 && !graph_[id].workspace) add_workspace(graph_, id, staged);
    }
    return merged_;
  }

 private:
  void join_branch(OpId id) {
    const Op op = graph_[id];
    for (RegionId region : op.regions) {
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        const ValueId yielded = graph_[region].results[i];
        if (yielded && may_leave(region, yielded) && sharing_.becomes(yielded, op.results[i]))
          join(yielded, op.results[i]);
      }
    }
  }

  void join_loop(OpId id) {
    const Op op = graph_[id];
    const RegionId body = op.regions[0];
    const std::size_t conditions = graph_[body].results.size() - op.results.size();
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId carried = graph_[body].parameters[i + 1], result = op.results[i];
      if (sharing_.becomes(carried, result)) join(carried, result);
      const ValueId yielded = graph_[body].results[i + conditions];
      if (may_leave(body, yielded) && sharing_.becomes(yielded, carried) &&
          done_before(body, carried, yielded))
        join(yielded, carried);
      const ValueId first = op.operands[i + 2];
      if (sharing_.fits(carried, first) && dies_in(id, first)) join(carried, first);
    }
  }

  /// Made in the region for itself, in bytes that no parameter and no other yielded value has.
  bool may_leave(RegionId region, ValueId yielded) const {
    const StorageId root = graph_.root(yielded);
    const auto in_root = [&](ValueId id) { return id && graph_.root(id) == root; };
    const auto& parameters = graph_[region].parameters;
    const auto& results = graph_[region].results;
    return std::none_of(parameters.begin(), parameters.end(), in_root) &&
           std::count_if(results.begin(), results.end(), in_root) == 1 &&
           sharing_.made_inside(region, yielded);
  }

  /// Nobody needs a carried value any more when the bytes of the next one are first written.
  bool done_before(RegionId body, ValueId carried, ValueId next) const {
    const StorageId old = graph_.root(carried), fresh = graph_.root(next);
    for (ValueId yielded : graph_[body].results) {
      if (yielded && graph_.root(yielded) == old) return false;
    }
    const auto& ops = graph_[body].ops;
    std::size_t begun = ops.size();
    sharing_.each_use(fresh, body, [&](std::size_t at) { begun = std::min(begun, at); });
    if (begun == ops.size()) return true;
    // Blocks leave values from outside alone, even those that nobody reads any more.
    bool done = graph_[ops[begun]].regions.empty();
    sharing_.each_use(old, body, [&](std::size_t at) { done = done && at < begun; });
    return done;
  }

  /// The loop is the last to read a first value, and reads it once, before it begins.
  bool dies_in(OpId loop, ValueId first) const {
    const RegionId region = sharing_.nesting().region_of(loop);
    if (region != Graph::body && !sharing_.made_inside(region, first)) return false;
    const StorageId root = graph_.root(first);
    const auto in_root = [&](ValueId id) { return id && graph_.root(id) == root; };
    const Op& op = graph_[loop];
    if (std::count_if(op.operands.begin(), op.operands.end(), in_root) != 1) return false;
    for (RegionId yields : {region, op.regions[0]}) {
      const auto& results = graph_[yields].results;
      if (std::any_of(results.begin(), results.end(), in_root)) return false;
    }
    const std::size_t here = sharing_.nesting().position_of(loop);
    bool dies = true;
    sharing_.each_use(root, region, [&](std::size_t at) { dies = dies && at <= here; });
    sharing_.each_use(root, op.regions[0], [&](std::size_t) { dies = false; });
    return dies;
  }

  void join(ValueId from, ValueId into) {
    sharing_.merge(graph_.root(from), graph_.root(into));
    ++merged_;
  }

  Graph& graph_;
  Sharing& sharing_;
  int merged_ = 0;
};

}  // namespace

int join_handovers(Graph& graph) {
  Sharing sharing(graph);
  return Joiner(graph, sharing).run();
}

}  // namespace arenite::graph
