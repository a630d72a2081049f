#include "src/graph/versions.hpp"

#include <arenite/graph/operator.hpp>

#include "src/graph/flaw.hpp"

namespace arenite::graph {
namespace {

std::string title(const Graph& graph, OpId id) {
  return graph[id].where.empty() ? describe(graph, id) : graph[id].where;
}

}  // namespace

Versions::Versions(const Graph& graph) : graph_(graph) {
  for (const OpId id : graph[Graph::body].ops) {
    if (graph[id].definition->new_version) note(id);
  }
  refuse_in_blocks();
}

/// Whether the value is some version of some of a buffer's bytes, and then where they lie. Results
/// in place are versions of their own: what counts is the storage before merges.
bool Versions::find(ValueId value, Place& place) const {
  const StorageId storage = graph_[value].storage;
  if (const auto found = places_.find(storage); found != places_.end()) {
    place = {found->second.buffer, found->second.offset + graph_[value].offset};
    return true;
  }
  place = {graph_.root(storage), graph_[value].offset};
  return graph_.root_storage(value).cls == StorageClass::buffer;
}

void Versions::note(OpId id) {
  const Op& op = graph_[id];
  const ValueId old = op.operands[0], made = op.results[0];
  Place place;
  if (!find(old, place)) return;
  ops_.push_back(id);
  places_[graph_[made].storage] = place;
  const Value& value = graph_[made];
  const std::int64_t begin = place.offset,
                     end = begin + byte_size(value.type, value.shape, value.layout);
  if (begin == end) return;
  Updates& others = updates_[graph_[old].storage];
  auto next = others.lower_bound(end);
  if (next != others.begin()) {
    const Update& other = (--next)->second;
    if (other.end > begin) {
      throw Flaw({.found = "a second new version of '" + graph_[old].name + "', which " +
                           describe(graph_, other.op) + " has replaced",
                  .expected = "one update of each version of a buffer",
                  .where = title(graph_, id),
                  .hint = "replace rows of that op's result instead"},
                 id, {});
    }
  }
  others.emplace(begin, Update{end, id});
}

void Versions::refuse_in_blocks() const {
  for (std::size_t r = 1; r < graph_.region_count(); ++r) {
    for (const OpId id : graph_[RegionId(r)].ops) {
      Place place;
      if (!graph_[id].definition->new_version || !find(graph_[id].operands[0], place)) continue;
      throw Flaw({.found = "a new version of buffer '" + graph_.storage(place.buffer).name +
                           "', made in a block",
                  .expected = "one made outside of blocks",
                  .where = title(graph_, id),
                  .hint = "yield the rows, and replace those of the buffer behind the block"},
                 id, {});
    }
  }
}

}  // namespace arenite::graph
