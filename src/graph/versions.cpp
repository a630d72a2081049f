#include "src/graph/versions.hpp"

#include "src/graph/values.hpp"

#include "src/graph/flaw.hpp"
#include "src/graph/nesting.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

std::string title(const Graph& graph, OpId id) {
  return graph[id].where.empty() ? describe(graph, id) : graph[id].where;
}

bool updates(const Op& op) { return op.phase == Phase::update || op.phase == Phase::init; }

}  // namespace

std::optional<std::size_t> renewed_operand(const Op& op, std::size_t result) {
  std::optional<std::size_t> found;
  for_each_renewed(op, [&](std::size_t r, std::size_t operand) {
    if (r == result) found = operand;
  });
  return found;
}

std::vector<std::pair<std::size_t, std::size_t>> pairs_in_place(const Graph& graph, const Op& op) {
  auto pairs = op.definition->in_place;
  std::erase_if(pairs, [&](const auto& pair) {
    const auto [result, operand] = pair;
    if (result >= op.results.size()) return true;
    if (operand >= op.operands.size() || !op.operands[operand]) return true;
    const Value &to = graph[op.results[result]], &from = graph[op.operands[operand]];
    // What has an element for each of a group's is still read when the first group is done.
    if (op.definition->formula && to.shape.elements() != joint_shape(graph, op.operands).elements())
      return true;
    // A compiler may take it that values of two types are not at one address.
    return to.type != from.type || to.layout != from.layout ||
           to.shape.elements() != from.shape.elements();
  });
  for_each_renewed(op, [&](std::size_t r, std::size_t operand) { pairs.emplace_back(r, operand); });
  return pairs;
}

bool only_renews(const Op& op) {
  std::size_t renewed = 0;
  for_each_renewed(op, [&](std::size_t, std::size_t) { ++renewed; });
  return renewed > 0 && renewed == op.results.size();
}

Versions::Versions(const Graph& graph) : graph_(graph) {
  for (const OpId id : graph[Graph::body].ops)
    for_each_renewed(graph[id], [&](std::size_t r, std::size_t o) { note({id, r, o}); });
  std::erase_if(all_, [&](const Version& v) { return !v.op; });
  refuse_in_blocks();
}

/// Whether the operand is some version of what persists, or of some of its bytes, and then where
/// they lie. Results in place are versions of their own: what counts is the storage before merges.
bool Versions::find(const Version& version, Place& place) const {
  const Op& op = graph_[version.op];
  const ValueId old = op.operands[version.operand];
  const StorageId storage = graph_[old].storage;
  if (const auto found = made_.find(storage); found != made_.end()) {
    place = {found->second.place.storage, found->second.place.offset + graph_[old].offset};
  } else {
    place = {graph_.root(storage), graph_[old].offset};
  }
  const StorageClass cls = graph_.storage(place.storage).cls;
  return cls == StorageClass::buffer ||
         (is_persistent(cls) &&
          (updates(op) || op.definition->operand_schema(version.operand).renews == Renews::state));
}

void Versions::note(const Version& version) {
  Place place;
  if (!find(version, place)) return;
  const Op& op = graph_[version.op];
  const Storage& storage = graph_.storage(place.storage);
  if (storage.cls != StorageClass::buffer && !updates(op)) {
    throw Flaw({.found = "a new version of " + std::string(to_string(storage.cls)) + " '" +
                         storage.name + "' in phase " + std::string(to_string(op.phase)),
                .expected = "one of phase update or init",
                .where = title(graph_, version.op)},
               version.op, {});
  }
  const Value& made = graph_[op.results[version.result]];
  const StorageId old = graph_[op.operands[version.operand]].storage;
  made_[made.storage] = {place, version.op, old, all_.size()};
  all_.push_back(version);
  const std::int64_t begin = place.offset,
                     end = begin + byte_size(made.type, made.shape, made.layout);
  if (begin < end) replace(updates_[old], begin, end, version);
}

/// Of an old version's bytes, which `by` is the new version of.
void Versions::replace(Updates& others, std::int64_t begin, std::int64_t end, const Version& by) {
  auto next = others.lower_bound(end);
  while (next != others.begin()) {
    const auto other = std::prev(next);
    if (other->second.end <= begin) break;
    const Version earlier = other->second.by;
    const StorageId taken = graph_[graph_[earlier.op].results[earlier.result]].storage;
    if (other->first < begin || other->second.end > end || !supersede(taken, by)) {
      throw Flaw(
          {.found = "a second new version of '" + graph_[graph_[by.op].operands[by.operand]].name +
                    "', which " + describe(graph_, earlier.op) + " has replaced",
           .expected = "one update of each version of what persists",
           .where = title(graph_, by.op),
           .hint = "update that op's result instead"},
          by.op, {});
    }
    next = others.erase(other);
  }
  others.emplace(begin, Update{end, by});
}

/// Where an op takes a version, or one that was made of it: they need not be kept then.
bool Versions::supersede(StorageId version, const Version& by) {
  for (const ValueId operand : graph_[by.op].operands) {
    std::vector<std::size_t> made;
    StorageId at = operand ? graph_[operand].storage : StorageId{};
    for (auto known = made_.find(at); known != made_.end(); known = made_.find(at)) {
      made.push_back(known->second.index);
      if (at == version) {
        for (const std::size_t index : made) all_[index].op = {};
        return true;
      }
      at = known->second.old;
    }
  }
  return false;
}

/// Whether a version of the storage is made behind the block of what its op gives.
bool Versions::handed_out(RegionId region, StorageId storage) const {
  const Nesting nesting(graph_);
  while (nesting.around(region) != Graph::body) region = nesting.around(region);
  const auto& given = graph_[nesting.holder(region)].results;
  return std::ranges::any_of(made_, [&](const auto& entry) {
    const Made& made = entry.second;
    const auto& operands = graph_[made.op].operands;
    return made.place.storage == storage &&
           std::ranges::find_first_of(operands, given) != operands.end();
  });
}

void Versions::refuse_in_blocks() const {
  for (std::size_t r = 1; r < graph_.region_count(); ++r) {
    for (const OpId id : graph_[RegionId(r)].ops) {
      for_each_renewed(graph_[id], [&](std::size_t result, std::size_t operand) {
        Place place;
        if (!find({id, result, operand}, place) || handed_out(RegionId(r), place.storage)) return;
        const Storage& storage = graph_.storage(place.storage);
        throw Flaw({.found = "a new version of " + std::string(to_string(storage.cls)) + " '" +
                             storage.name + "', made in a block",
                    .expected = "one made outside of blocks",
                    .where = title(graph_, id),
                    .hint = "yield the value, and update what persists behind the block"},
                   id, {});
      });
    }
  }
}

}  // namespace arenite::graph
