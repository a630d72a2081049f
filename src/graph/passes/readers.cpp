#include "src/graph/passes/readers.hpp"

#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

#include <algorithm>

namespace arenite::graph {

bool in_the_way(const Access& a, const Access& b) {
  return a.storage == b.storage && (a.writes || b.writes) && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

Readers::Readers(const Graph& graph)
    : graph_(graph),
      nesting_(graph),
      readers_(graph.value_count()),
      taken_(graph.value_count(), nullptr) {
  for (std::size_t r = 0; r < graph.region_count(); ++r) {
    for (OpId id : graph[RegionId(r)].ops) {
      for (ValueId operand : graph[id].operands) {
        if (operand) note(operand, id, RegionId(r));
      }
    }
    for (ValueId yielded : graph[RegionId(r)].results) {
      if (!yielded) continue;
      if (nesting_.region_of(yielded) == RegionId(r)) {
        taken_[yielded.index] = "%v is what its block yields";
      } else {
        note(yielded, {}, RegionId(r));
      }
    }
  }
  if (graph.training) taken_[graph.training->loss.index] = "%v is the loss";
  for (ValueId output : graph.outputs) taken_[output.index] = "%v is an output";
}

void Readers::note(ValueId id, OpId op, RegionId region) {
  const RegionId home = nesting_.region_of(id);
  const bool in_block = region != home;
  for (RegionId at = region; at && at != home; at = nesting_.around(at)) op = nesting_.holder(at);
  if (op) readers_[id.index].push_back({op, in_block});
}

Obstacle Readers::only_for(ValueId id, OpId reader) const {
  if (const Obstacle why = taken(id)) return why;
  if (of(id).empty()) return {.words = "nobody reads %v", .value = id};
  for (const Reader& other : of(id)) {
    if (other.in_block)
      return {.words = "%v is read in a block of %o", .value = id, .op = other.op};
    if (other.op != reader) return {.words = "%v is read by %o too", .value = id, .op = other.op};
  }
  if (of(id).size() != 1) return {.words = "%o reads %v twice", .value = id, .op = reader};
  const StorageClass cls = graph_.root_storage(id).cls;
  if (cls == StorageClass::activation || cls == StorageClass::gradient) return {};
  return {.words = "%v is of class %t", .value = id, .name = to_string(cls)};
}

std::vector<Access> touched(const Graph& graph, OpId id) {
  std::vector<Access> all = accesses(graph, id);
  const Op& op = graph[id];
  for_each_renewed(op, [&](std::size_t, std::size_t operand) {
    const auto [begin, end] = byte_range(graph, op.operands[operand]);
    all.push_back({graph.root(op.operands[operand]), begin, end - begin, false, true});
  });
  return all;
}

bool reads_renewed(const Graph& graph, OpId reader, OpId update) {
  bool found = false;
  for_each_renewed(graph[update], [&](std::size_t, std::size_t i) {
    const StorageId root = graph.root(graph[update].operands[i]);
    found |= std::ranges::any_of(graph[reader].operands, [&](ValueId operand) {
      return operand && graph.root(operand) == root;
    });
  });
  return found;
}

OpId Readers::renewer(OpId reader, OpId first, OpId last, std::span<const OpId> except) const {
  const std::size_t end = nesting_.position_of(last);
  std::size_t at = nesting_.position_of(first) + 1;
  if (at >= end) return {};
  const auto& ops = graph_[nesting_.region_of(first)].ops;
  const auto mine = accesses(graph_, reader);
  for (; at < end; ++at) {
    if (std::find(except.begin(), except.end(), ops[at]) != except.end()) continue;
    for (const Access& theirs : touched(graph_, ops[at])) {
      const bool collides = std::any_of(mine.begin(), mine.end(), [&](const Access& a) {
        return a.reads && theirs.writes && in_the_way(a, theirs);
      });
      if (collides) return ops[at];
    }
  }
  return {};
}

Obstacle Readers::moved(OpId reader, OpId first, OpId last, std::span<const OpId> except) const {
  const OpId renews = renewer(reader, first, last, except);
  return renews ? Obstacle{.words = "%o updates what is read in between", .op = renews}
                : Obstacle{};
}

}  // namespace arenite::graph
