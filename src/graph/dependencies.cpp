#include <arenite/graph/dependencies.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include "src/graph/views.hpp"

namespace arenite::graph {

namespace {

class AccessList {
 public:
  AccessList(const Graph& graph, std::vector<Access>& list) : graph_(&graph), list_(&list) {}

  void add(ValueId id, bool reads, bool writes) {
    if (!id) return;
    const Value& value = (*graph_)[id];
    const std::int64_t bytes = byte_size(value.type, value.shape, value.layout);
    if (bytes == 0) return;
    list_->push_back({graph_->root(id), value.offset, bytes, reads, writes});
  }

  /// The op's own accesses, without those of its regions.
  void add(const Op& op) {
    const auto views = result_views(*graph_, op);
    if (views.all()) return;
    for (const ValueId operand : op.operands) add(operand, true, false);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (!views[i]) add(op.results[i], false, true);
    }
    add(op.workspace, false, true);
  }

  /// And those of its regions.
  void add_nested(const Op& op) {
    add(op);
    for (RegionId region : op.regions) {
      for (ValueId parameter : (*graph_)[region].parameters) add(parameter, true, true);
      for (OpId inner : (*graph_)[region].ops) add_nested((*graph_)[inner]);
      for (ValueId yielded : (*graph_)[region].results) add(yielded, true, false);
    }
  }

 private:
  const Graph* graph_;
  std::vector<Access>* list_;
};

void merge_equal_ranges(std::vector<Access>& list) {
  const auto key = [](const Access& a) { return std::tuple(a.storage, a.offset, a.bytes); };
  std::sort(list.begin(), list.end(),
            [&](const Access& a, const Access& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (const Access& access : list) {
    if (kept > 0 && key(list[kept - 1]) == key(access)) {
      list[kept - 1].reads |= access.reads;
      list[kept - 1].writes |= access.writes;
    } else {
      list[kept++] = access;
    }
  }
  list.resize(kept);
}

/// Last writer and readers since, for every byte range of every root storage.
///
/// Readers are persistent lists: splitting a segment shares its list instead of copying it, and a
/// writer that meets a node again knows that it has seen the rest.
class History {
 public:
  explicit History(std::size_t storages) : timelines_(storages) {}

  void read(OpId op, const Access& access, std::vector<OpId>& before) {
    Timeline& timeline = timelines_[access.storage.index];
    for_each_segment(timeline, access, [&](Segment& segment) {
      if (segment.writer && segment.writer != op) before.push_back(segment.writer);
      readers_.push_back({op, segment.readers, {}});
      segment.readers = static_cast<std::uint32_t>(readers_.size() - 1);
    });
  }

  void write(OpId op, const Access& access, std::vector<OpId>& before) {
    Timeline& timeline = timelines_[access.storage.index];
    const auto [first, last] = for_each_segment(timeline, access, [&](Segment& segment) {
      if (segment.readers == none) {
        if (segment.writer && segment.writer != op) before.push_back(segment.writer);
        return;
      }
      for (std::uint32_t i = segment.readers; i != none && readers_[i].met_by != op;
           i = readers_[i].next) {
        readers_[i].met_by = op;
        if (readers_[i].op != op) before.push_back(readers_[i].op);
      }
    });
    timeline.erase(first, last);
    timeline.emplace(access.offset, Segment{access.offset + access.bytes, op, none});
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  struct Reader {
    OpId op;
    std::uint32_t next = none;
    OpId met_by;  // the last writer that walked over this node
  };
  struct Segment {
    std::int64_t end = 0;
    OpId writer;
    std::uint32_t readers = none;  // head of the list
  };
  using Timeline = std::map<std::int64_t, Segment>;  // disjoint, by first byte

  static void split(Timeline& timeline, std::int64_t at) {
    auto next = timeline.upper_bound(at);
    if (next == timeline.begin()) return;
    auto segment = std::prev(next);
    if (segment->first == at || segment->second.end <= at) return;
    timeline.emplace_hint(next, at, segment->second);
    segment->second.end = at;
  }

  /// Cuts and fills so that segments cover the access exactly, then visits them.
  template <class Visit>
  std::pair<Timeline::iterator, Timeline::iterator> for_each_segment(Timeline& timeline,
                                                                     const Access& access,
                                                                     Visit visit) {
    const std::int64_t end = access.offset + access.bytes;
    split(timeline, access.offset);
    split(timeline, end);
    auto first = timeline.lower_bound(access.offset), at = first;
    for (std::int64_t from = access.offset; from < end; from = at->second.end, ++at) {
      if (at == timeline.end() || at->first != from) {
        const std::int64_t gap_end = at == timeline.end() ? end : std::min(end, at->first);
        at = timeline.emplace_hint(at, from, Segment{gap_end, {}, none});
        if (from == access.offset) first = at;
      }
      visit(at->second);
    }
    return {first, at};
  }

  std::vector<Timeline> timelines_;
  std::vector<Reader> readers_;
};

/// Whoever reads a value of no bytes follows the op that made it.
std::vector<OpId> makers_of_nothing(const Graph& graph, OpId id) {
  std::vector<OpId> makers;
  for (const ValueId operand : graph[id].operands) {
    if (!operand || graph.root_storage(operand).bytes > 0) continue;
    const OpId maker = graph[operand].producer;
    if (maker && !result_views(graph, graph[maker]).all()) makers.push_back(maker);
  }
  return makers;
}

}  // namespace

bool is_view_op(const Graph& graph, OpId op) { return result_views(graph, graph[op]).all(); }

bool fills_storage(const Graph& graph, ValueId id) {
  const Value& value = graph[id];
  return value.offset == 0 &&
         byte_size(value.type, value.shape, value.layout) == graph.root_storage(id).bytes;
}

std::vector<Access> accesses(const Graph& graph, OpId id) {
  std::vector<Access> list;
  list.reserve(graph[id].operands.size() + graph[id].results.size() + 1);
  AccessList(graph, list).add_nested(graph[id]);
  merge_equal_ranges(list);
  return list;
}

std::size_t Dependencies::edge_count() const noexcept {
  std::size_t edges = 0;
  for (const auto& list : predecessors) edges += list.size();
  return edges;
}

Dependencies dependencies(const Graph& graph, RegionId region) {
  Dependencies result;
  result.ops = graph[region].ops;
  result.predecessors.resize(graph.op_count());
  History history(graph.storage_count());
  for (OpId op : result.ops) {
    std::vector<OpId>& before = result.predecessors.at(op.index);
    before = makers_of_nothing(graph, op);
    const std::vector<Access> touched = accesses(graph, op);
    for (const Access& access : touched) {
      if (access.reads) history.read(op, access, before);
    }
    for (const Access& access : touched) {
      if (access.writes) history.write(op, access, before);
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  return result;
}

}  // namespace arenite::graph
