#include <arenite/graph/passes.hpp>

#include "src/base/sum_tree.hpp"
#include "src/base/words.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/shards.hpp"
#include "src/graph/passes/sharing.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace arenite::graph {
namespace {

/// Ops of no lane, each as soon as all is there that it waits for.
class Others {
 public:
  Others(const Graph& graph, const std::vector<OpId>& ops)
      : graph_(graph), waiting_(graph.op_count(), 0), waited_for_(graph.op_count()) {
    find_makers(ops);
    std::map<StorageId, std::vector<OpId>> touching;  // so far
    for (const OpId id : ops) {
      std::set<OpId> before(makers_[id.index].begin(), makers_[id.index].end());
      // Who makes a new version comes behind whoever sees the old one, so that it may lie there;
      // but what a shard waits for cannot wait for shards.
      for_each_renewed(graph[id], [&](std::size_t, std::size_t operand) {
        if (for_lanes_[id.index]) return;
        const auto& others = touching[graph.root(graph[id].operands[operand])];
        before.insert(others.begin(), others.end());
      });
      for (const Access& access : accesses(graph, id)) touching[access.storage].push_back(id);
      if (graph[id].lane != Op::shared_lane) continue;
      is_other_.insert(id);
      for (const OpId other : before) {
        waited_for_[other.index].push_back(id);
        ++waiting_[id.index];
      }
    }
  }

  /// Appends an op, and others that have waited for it alone.
  void append(OpId id, std::vector<OpId>& order) {
    std::set<OpId> ready{id};
    while (!ready.empty()) {
      const OpId next = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(next);
      for (const OpId other : waited_for_[next.index]) {
        if (--waiting_[other.index] == 0) ready.insert(other);
      }
    }
  }

  /// Those that wait for nothing.
  std::vector<OpId> first() const {
    std::vector<OpId> all;
    for (const OpId id : is_other_) {
      if (waiting_[id.index] == 0) all.push_back(id);
    }
    return all;
  }

 private:
  void find_makers(const std::vector<OpId>& ops) {
    makers_.resize(graph_.op_count());
    for_lanes_.assign(graph_.op_count(), false);
    std::vector<bool> is_here(graph_.op_count(), false);  // others are in blocks
    for (const OpId id : ops) is_here[id.index] = true;
    for (const OpId id : ops) {
      for_each_named(graph_, id, [&](ValueId value) {
        const OpId maker = graph_[value].producer;
        if (maker && maker != id && is_here[maker.index]) makers_[id.index].push_back(maker);
      });
    }
    for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
      const bool needed = graph_[*id].lane != Op::shared_lane || for_lanes_[id->index];
      for (const OpId maker : makers_[id->index])
        for_lanes_[maker.index] = for_lanes_[maker.index] || needed;
    }
  }

  const Graph& graph_;
  std::vector<std::vector<OpId>> makers_;      // by op: of what it reads
  std::vector<bool> for_lanes_;                // by op: a lane's op reads what is made of it
  std::vector<int> waiting_;                   // by op: for so many
  std::vector<std::vector<OpId>> waited_for_;  // by op: by whom
  std::set<OpId> is_other_;
};

class LineUp {
 public:
  LineUp(const Graph& graph, const BatchCut& cut, int at_once) : graph_(graph), cut_(cut) {
    // Neighbours in one line: their sums need not wait for another one.
    for_each_part(cut.shards, at_once, [&](int line, std::int64_t, std::int64_t count) {
      line_.insert(line_.end(), static_cast<std::size_t>(count), line);
    });
    following_ = cut.shards - (line_.back() + 1);
    for (const OpId id : graph[Graph::body].ops) {
      if (!adds_shards(graph, id, cut)) continue;
      parts_[id] = {};
      const auto& terms = graph[id].operands;
      for (std::size_t i = 0; i < terms.size(); ++i) sums_with_[terms[i]].emplace_back(id, i);
    }
    find_order();
  }

  Graph lined_up(const OperatorTable& table) {
    return rebuild(graph_, table, order_,
                   [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
                     return replace(id, map, builder);
                   });
  }

  int following() const noexcept { return following_; }

 private:
  /// Of terms [first, second) of a sum.
  using Range = std::pair<std::size_t, std::size_t>;
  using Parts = std::map<Range, ValueId>;

  void find_order() {
    const std::vector<OpId>& ops = graph_[Graph::body].ops;
    Others others(graph_, ops);
    for (const OpId id : others.first()) others.append(id, order_);
    std::map<std::pair<int, int>, std::vector<OpId>> turns;  // by place in its line, and line
    for (const OpId id : ops) {
      if (graph_[id].lane == Op::shared_lane) continue;
      const int shard = cut_.shard_of(graph_[id].lane);
      const auto begin = std::ranges::find(line_, line_of(shard));
      turns[{shard - static_cast<int>(begin - line_.begin()), line_of(shard)}].push_back(id);
    }
    for (const auto& [turn, mine] : turns) {
      for (const OpId id : mine) others.append(id, order_);
    }
  }

  int line_of(int shard) const { return line_[static_cast<std::size_t>(shard)]; }

  /// Where an op's lane goes.
  int new_lane(int lane) const {
    return line_of(cut_.shard_of(lane)) * cut_.lanes + lane % cut_.lanes;
  }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) {
    if (parts_.contains(id)) {
      const ValueId sum = graph_[id].results[0];
      map[sum.index] = total(id, {0, graph_[id].operands.size()}, builder);
      copy_placement(graph_, sum, builder.graph(), map[sum.index]);
      return true;
    }
    const int lane = graph_[id].lane;
    if (lane == Op::shared_lane) return false;
    copy_op(graph_, id, new_lane(lane), map, builder);
    for (const ValueId result : graph_[id].results) {
      const auto sums = sums_with_.find(result);
      if (sums == sums_with_.end()) continue;
      for (const auto& [sum, term] : sums->second) {
        parts_[sum][{term, term + 1}] = map[result.index];
        complete(sum, {0, graph_[sum].operands.size()}, term, builder);
      }
    }
    return true;
  }

  int shard_of(OpId sum, std::size_t term) const {
    return cut_.shard_of(lane_of(graph_, graph_[sum].operands[term]));
  }

  /// Adds what one line has of a sum, as far as this term was missing.
  void complete(OpId sum, Range range, std::size_t term, Builder& builder) {
    const auto [from, to] = range;
    if (to - from < 2) return;
    const std::size_t middle = middle_of(from, to);
    complete(sum, term < middle ? Range{from, middle} : Range{middle, to}, term, builder);
    Parts& parts = parts_[sum];
    const auto left = parts.find({from, middle}), right = parts.find({middle, to});
    if (left == parts.end() || right == parts.end() ||
        line_of(shard_of(sum, from)) != line_of(shard_of(sum, to - 1)))
      return;
    const int lane = lane_of(graph_, graph_[sum].operands[term]);
    parts[range] = add(sum, left->second, right->second, new_lane(lane), builder);
  }

  /// All of a range, of which each line has added what it has.
  ValueId total(OpId sum, Range range, Builder& builder) {
    if (const auto known = parts_[sum].find(range); known != parts_[sum].end())
      return known->second;
    const std::size_t middle = middle_of(range.first, range.second);
    const ValueId left = total(sum, {range.first, middle}, builder);
    const ValueId right = total(sum, {middle, range.second}, builder);
    return add(sum, left, right, Op::shared_lane, builder);
  }

  ValueId add(OpId sum, ValueId left, ValueId right, int lane, Builder& builder) const {
    builder.context = {.phase = graph_[sum].phase, .lane = lane, .where = graph_[sum].where};
    return builder.add1("sum", {left, right});
  }

  const Graph& graph_;
  const BatchCut cut_;
  std::vector<int> line_;  // by shard
  int following_ = 0;
  std::map<ValueId, std::vector<std::pair<OpId, std::size_t>>> sums_with_;  // by term: its place
  std::vector<OpId> order_;
  std::map<OpId, Parts> parts_;  // by sum of shards: what there is of it
};

}  // namespace

int line_up_shards(Graph& graph, const OperatorTable& table, const BatchCut& cut, int at_once,
                   Remarks* remarks) {
  expect_before_select(graph, "line_up_shards");
  LineUp line_up(graph, cut, at_once);
  graph = line_up.lined_up(table);
  if (remarks) {
    remarks->done.push_back(
        {counted(cut.shards, "shard"), digits(cut.shards - line_up.following()) + " at once"});
  }
  return line_up.following();
}

}  // namespace arenite::graph
