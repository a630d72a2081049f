#include "src/graph/views.hpp"

#include <arenite/graph/dependencies.hpp>

#include <algorithm>
#include <map>

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

std::vector<OpId> with_others_early(const Graph& graph, RegionId region,
                                    const std::vector<OpId>& order) {
  std::vector<bool> is_other(graph.op_count(), false), is_there(graph.op_count(), false);
  std::map<OpId, std::size_t> waiting;       // by other op: operands that are not there yet
  std::map<OpId, std::vector<OpId>> others;  // by what makes an operand
  std::vector<OpId> result, pending;
  for (OpId id : graph[region].ops) is_other[id.index] = is_there[id.index] = true;
  for (OpId id : order) is_other[id.index] = false;
  for (OpId id : graph[region].ops) {
    if (!is_other[id.index]) continue;
    std::size_t& count = waiting[id];
    for (ValueId operand : graph[id].operands) {
      const OpId producer = operand ? graph[operand].producer : OpId{};
      if (!producer || !is_there[producer.index]) continue;
      ++count;
      others[producer].push_back(id);
    }
    if (count == 0) pending.push_back(id);
  }
  const auto add = [&] {
    while (!pending.empty()) {
      const OpId id = pending.back();
      pending.pop_back();
      result.push_back(id);
      const auto found = others.find(id);
      if (found == others.end()) continue;
      for (auto next = found->second.rbegin(); next != found->second.rend(); ++next) {
        if (--waiting[*next] == 0) pending.push_back(*next);
      }
    }
  };
  std::ranges::reverse(pending);
  add();
  for (OpId id : order) {
    pending.push_back(id);
    add();
  }
  return result;
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
