#include <arenite/graph/regions.hpp>

#include "src/graph/passes/sharing.hpp"

#include <algorithm>
#include <array>

namespace arenite::graph {
namespace {

/// The bytes of what one side alone leaves behind.
struct Left {
  StorageId root;
  std::int64_t bytes = 0;
};

class SideJoiner {
 public:
  SideJoiner(Graph& graph, Sharing& sharing) : graph_(graph), sharing_(sharing) {}

  int run() {
    for (OpId id : nested_ops(graph_)) {
      if (graph_[id].definition->control == Control::branch) join(id);
    }
    return merged_;
  }

 private:
  void join(OpId id) {
    // One of the sides never runs there, and what it seems to read may stand beside the other's.
    if (sharing_.nesting().within_branch_on(id, graph_[id].operands[0])) return;
    std::array<std::vector<Left>, 2> sides;
    for (ValueId result : graph_[id].results) {
      if (!is_partial(graph_, result)) continue;
      const std::size_t side = side_of(graph_, result);
      if (sharing_.is_working(result) && !sharing_.holds_output(result) &&
          sharing_.made_on_side(result, graph_[id].operands[0], side))
        sides[side].push_back({graph_.root(result), graph_.root_storage(result).bytes});
    }
    // Large ones first; of equal ones, those that come first.
    for (auto& side : sides) std::ranges::stable_sort(side, std::ranges::greater{}, &Left::bytes);
    join_equal(sides[0], sides[1]);
    for (std::size_t i = 0; i < std::min(sides[0].size(), sides[1].size()); ++i)
      merge(sides[0][i], sides[1][i]);
  }

  /// Those of one size first: they cost neither side a byte.
  void join_equal(std::vector<Left>& first, std::vector<Left>& second) {
    std::vector<Left> rest;
    for (const Left& left : first) {
      const auto other = std::ranges::find_if(second, [&](const Left& candidate) {
        return candidate.bytes == left.bytes && may_merge(left, candidate);
      });
      if (other == second.end()) {
        rest.push_back(left);
        continue;
      }
      merge(left, *other);
      second.erase(other);
    }
    first = std::move(rest);
  }

  bool may_merge(const Left& a, const Left& b) const {
    return graph_.storage(a.root).space == graph_.storage(b.root).space &&
           graph_.storage(a.root).cls == graph_.storage(b.root).cls;
  }

  void merge(const Left& a, const Left& b) {
    if (!may_merge(a, b)) return;
    sharing_.merge(a.bytes < b.bytes ? a.root : b.root, a.bytes < b.bytes ? b.root : a.root);
    ++merged_;
  }

  Graph& graph_;
  Sharing& sharing_;
  int merged_ = 0;
};

}  // namespace

int join_sides(Graph& graph) {
  Sharing sharing(graph);
  return SideJoiner(graph, sharing).run();
}

}  // namespace arenite::graph
