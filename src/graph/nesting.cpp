#include "src/graph/nesting.hpp"

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>

#include "src/graph/views.hpp"

namespace arenite::graph {

void add_nested_ops(const Graph& graph, RegionId region, std::vector<OpId>& all) {
  for (const OpId id : graph[region].ops) {
    all.push_back(id);
    for (const RegionId inner : graph[id].regions) add_nested_ops(graph, inner, all);
  }
}

Nesting::Nesting(const Graph& graph)
    : graph_(graph),
      region_of_op_(graph.op_count()),
      position_(graph.op_count()),
      holder_(graph.region_count()) {
  for (std::size_t i = 0; i < graph.region_count(); ++i) {
    const auto& ops = graph[RegionId(i)].ops;
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const OpId id = ops[at];
      const Op& op = graph[id];
      region_of_op_[id.index] = RegionId(i);
      position_[id.index] = at;
      for (std::size_t r = 0; r < op.regions.size(); ++r) holder_[op.regions[r].index] = {id, r};
    }
  }
}

RegionId Nesting::region_of(ValueId id) const {
  const Value& value = graph_[id];
  if (value.parameter_of) return value.parameter_of;
  return value.producer ? region_of(value.producer) : Graph::body;
}

RegionId Nesting::around(RegionId region) const {
  const OpId holder = holder_[region.index].first;
  return holder ? region_of(holder) : RegionId{};
}

bool Nesting::within_branch_on(OpId op, ValueId condition) const {
  for (RegionId at = region_of(op); at && at != Graph::body; at = around(at)) {
    const Op& holder = graph_[holder_[at.index].first];
    if (holder.definition->control == Control::branch && holder.operands[0] == condition)
      return true;
  }
  return false;
}

std::vector<Nesting::Side> Nesting::sides(ValueId value) const {
  std::vector<Side> list;
  const auto add = [&](OpId branch, std::size_t side) {
    list.emplace_back(graph_[branch].operands[0], side);
  };
  if (is_partial(graph_, value)) add(graph_[value].producer, side_of(graph_, value));
  for (RegionId at = region_of(value); at && at != Graph::body; at = around(at)) {
    const auto [holder, side] = holder_[at.index];
    if (graph_[holder].definition->control == Control::branch) add(holder, side);
  }
  return list;
}

bool Nesting::on_side(ValueId value, ValueId condition, std::size_t side) const {
  const auto all = sides(value);
  return std::ranges::find(all, Side{condition, side}) != all.end();
}

bool Nesting::exclude(ValueId a, ValueId b) const {
  const auto first = sides(a), second = sides(b);
  return std::ranges::any_of(first, [&](const Side& side) {
    return std::ranges::find(second, Side{side.first, 1 - side.second}) != second.end();
  });
}

bool Nesting::covers_storage(ValueId value) const {
  if (fills_storage(graph_, value)) return true;
  const auto [begin, end] = byte_range(graph_, value);
  const StorageId root = graph_.root(value);
  for (std::size_t i = 0; i < graph_.value_count(); ++i) {
    const ValueId other(i);
    if (graph_.root(other) != root) continue;
    const auto [from, to] = byte_range(graph_, other);
    if ((from < begin || to > end) && !exclude(value, other)) return false;
  }
  return true;
}

}  // namespace arenite::graph
