#include "src/graph/views.hpp"

#include <algorithm>

namespace arenite::graph {

ResultViews::ResultViews(const Graph& graph, const Op& op) : size_(op.results.size()) {
  if (!op.definition || !op.definition->views) return;
  views_ = op.definition->views(OpView(graph, op));
  views_.resize(size_);
}

bool ResultViews::all() const noexcept {
  return !views_.empty() &&
         std::all_of(views_.begin(), views_.end(), [](const auto& v) { return v.has_value(); });
}

void move_views(Graph& graph, OpId id) {
  const Op& op = graph[id];
  const auto views = result_views(graph, op);
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!views[i]) continue;
    const Value& owner = graph[op.operands.at(views[i]->operand)];
    Value& view = graph[op.results[i]];
    view.storage = owner.storage;
    view.offset = owner.offset + views[i]->offset;
    view.layout = owner.layout;
  }
}

}  // namespace arenite::graph
