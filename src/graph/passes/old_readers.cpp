#include "src/graph/passes/old_readers.hpp"

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/graph/passes/sharing.hpp"
#include "src/graph/views.hpp"

#include <algorithm>
#include <utility>

namespace arenite::graph {

bool share_bytes(const Graph& graph, ValueId a, ValueId b) {
  const auto [begin, end] = byte_range(graph, a);
  const auto [from, to] = byte_range(graph, b);
  return graph.root(a) == graph.root(b) && std::max(begin, from) < std::min(end, to);
}

OldReaders::OldReaders(const Graph& graph, RegionId region)
    : graph_(graph), region_(region), position_(graph.op_count()), uses_(graph.storage_count()) {
  const auto& ops = graph[region].ops;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const OpId id = ops[at];
    const Op& op = graph[id];
    position_[id.index] = at;
    if (is_view_op(graph, id)) continue;  // those who read the view count
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i]) add(at, {op.operands[i], id});
    }
    if (op.regions.empty()) continue;
    for_each_named(graph, id, [&](ValueId value) { add(at, {value, id}); });
  }
  for (const ValueId taken : region == Graph::body ? graph.outputs : graph[region].results) {
    if (taken) add(ops.size(), {taken, {}});
  }
}

void OldReaders::add(std::size_t position, const Use& use) {
  uses_[graph_.root(use.value).index].emplace(position, use);
}

void OldReaders::move(StorageId from, StorageId into) {
  uses_[into.index].merge(uses_[from.index]);
}

std::string OldReaders::obstacle(OpId id, ValueId old, const std::vector<bool>& ignored) const {
  const Op& op = graph_[id];
  bool met = false;  // twice is once too often
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i] == old && !std::exchange(met, true)) continue;
    if (!op.operands[i] || !share_bytes(graph_, op.operands[i], old)) continue;
    return "its operand '" + op.definition->operand_schema(i).name + "' lies in the old version";
  }
  const auto& uses = uses_[graph_.root(old).index];
  for (auto use = uses.upper_bound(position_[id.index]); use != uses.end(); ++use) {
    const OpId reader = use->second.op;
    if (reader && reader.index < ignored.size() && ignored[reader.index]) continue;
    if (share_bytes(graph_, use->second.value, old)) return text(op, use->second);
  }
  return {};
}

std::string OldReaders::text(const Op& made_by, const Use& use) const {
  if (!use.op)
    return region_ == Graph::body ? "the old version is an output" : "the block yields it";
  const Op& reader = graph_[use.op];
  // Also where keep_state has copied it for the caller.
  if (reader.name() == copy_operator &&
      std::ranges::find(graph_.outputs, reader.results[0]) != graph_.outputs.end())
    return "the old version is an output";
  const Phase phase = reader.phase;
  const bool saved = phase == Phase::backward && made_by.phase == Phase::forward;
  return describe(graph_, use.op) + " reads the old version " +
         (saved ? "in the backward pass, for which it is saved" : "later");
}

}  // namespace arenite::graph
