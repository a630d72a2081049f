#include "src/graph/passes/tidy_needs.hpp"

#include <algorithm>

#include "src/graph/passes/rebuild.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

/// Operands, or what a block yields, that stand before those that belong to results.
std::size_t before_results(const Op& op, const std::vector<ValueId>& list) {
  return list.size() - op.results.size();
}

bool carries(const Op& op) { return op.definition->control == Control::loop; }
bool has_separate_results(const Op& op) { return op.definition->control != Control::none; }

}  // namespace

Needs::Needs(const Graph& graph, const std::vector<bool>& kept, const std::vector<bool>& replaced,
             Reports reports)
    : graph_(graph), nesting_(graph), ops_(graph.op_count()), values_(graph.value_count()) {
  for (ValueId output : graph.outputs) need(output);
  if (graph.training) need(graph.training->loss);
  for (std::size_t r = 0; r < graph.region_count(); ++r) {
    for (OpId id : graph[RegionId(r)].ops) {
      const Op& op = graph[id];
      if (replaced[id.index]) continue;
      const bool reporting = reports == Reports::needed && op.definition->fault;
      if (kept[id.index] || reporting) need(id);
    }
  }
  settle();
  // A loop carries something.
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const Op& op = graph[OpId(i)];
    if (ops_[i] && carries(op) &&
        std::ranges::none_of(op.results, [&](ValueId id) { return value(id); }))
      need(op.results.front());
  }
  settle();
}

bool Needs::reports_only(OpId id) const {
  const Op& op = graph_[id];
  return this->op(id) && op.definition->fault &&
         std::ranges::none_of(op.results, [&](ValueId result) { return value(result); });
}

void Needs::need(ValueId id) {
  if (!id || values_[id.index]) return;
  values_[id.index] = true;
  pending_.push_back(id);
}

void Needs::need(OpId id) {
  if (ops_[id.index]) return;
  ops_[id.index] = true;
  if (const OpId holder = nesting_.holder(nesting_.region_of(id))) need(holder);
  const Op& op = graph_[id];
  const auto need_first = [&](const std::vector<ValueId>& list, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) need(list[i]);
  };
  need_first(op.operands, carries(op) ? before_results(op, op.operands) : op.operands.size());
  for (RegionId region : op.regions) {
    const auto& yielded = graph_[region].results;
    need_first(yielded, has_separate_results(op) ? before_results(op, yielded) : yielded.size());
  }
}

/// All that the value is made of.
void Needs::need_made(ValueId id) {
  const Value& value = graph_[id];
  if (value.parameter_of) {
    const Op& loop = graph_[nesting_.holder(value.parameter_of)];
    const auto& parameters = graph_[value.parameter_of].parameters;
    const auto i = std::ranges::find(parameters, id) - parameters.begin();
    if (carries(loop) && i > 0) need(loop.results[static_cast<std::size_t>(i) - 1]);
    return need(nesting_.holder(value.parameter_of));
  }
  if (!value.producer) return;
  need(value.producer);
  const Op& op = graph_[value.producer];
  if (op.regions.empty() || !has_separate_results(op)) return;
  const std::size_t i = result_index(op, id);
  if (carries(op)) need(op.operands[before_results(op, op.operands) + i]);
  for (RegionId region : op.regions) {
    const auto& yielded = graph_[region].results;
    need(yielded[before_results(op, yielded) + i]);
  }
}

void Needs::settle() {
  while (!pending_.empty()) {
    const ValueId id = pending_.back();
    pending_.pop_back();
    need_made(id);
  }
}

int Needs::drop_results(Graph& graph) const {
  int dropped = 0;
  for (std::size_t at = 0; at < graph.op_count(); ++at) {
    Op& op = graph[OpId(at)];
    if (!ops_[at] || op.regions.empty() || !has_separate_results(op)) continue;
    for (std::size_t i = op.results.size(); i-- > 0;) {
      if (value(op.results[i])) continue;
      const auto drop = [&](std::vector<ValueId>& list) {
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(before_results(op, list) + i));
      };
      if (carries(op)) drop(op.operands);
      for (RegionId region : op.regions) {
        drop(graph[region].results);
        if (carries(op)) drop(graph[region].parameters);
      }
      op.results.erase(op.results.begin() + static_cast<std::ptrdiff_t>(i));
      ++dropped;
    }
  }
  return dropped;
}

}  // namespace arenite::graph
