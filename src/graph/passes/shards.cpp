#include "src/graph/passes/shards.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "src/base/sum_tree.hpp"

namespace arenite::graph {
namespace {

/// About as many as a kernel for GPUs takes at once.
constexpr std::size_t most_terms = 256;

/// Halves of many are those of the tree in which one sum adds them.
ValueId add_all(Builder& builder, std::span<const ValueId> terms, int lane) {
  if (terms.size() == 1) return terms.front();
  if (terms.size() > most_terms) {
    const std::size_t middle = middle_of(0, terms.size());
    const ValueId halves[] = {add_all(builder, terms.first(middle), lane),
                              add_all(builder, terms.subspan(middle), lane)};
    return add_all(builder, halves, lane);
  }
  const OpContext saved = builder.context;
  builder.context.lane = lane;
  const ValueId sum = builder.add1("sum", {terms.begin(), terms.end()});
  builder.context = saved;
  return sum;
}

int common_lane(const std::vector<Term>& terms) {
  const int lane = terms.front().lane;
  const bool common =
      std::ranges::all_of(terms, [&](const Term& term) { return term.lane == lane; });
  return common ? lane : Op::shared_lane;
}

std::vector<ValueId> values_of(const std::vector<Term>& terms) {
  std::vector<ValueId> values;
  for (const Term& term : terms) values.push_back(term.value);
  return values;
}

}  // namespace

int lane_of(const Graph& graph, ValueId id) {
  const OpId maker = graph[id].producer;
  return maker ? graph[maker].lane : Op::shared_lane;
}

ValueId add_up(Builder& builder, const BatchCut& cut, const std::vector<Term>& terms) {
  if (cut.shards < 2) return add_all(builder, values_of(terms), common_lane(terms));
  std::map<int, std::vector<Term>> of_shard;
  std::vector<ValueId> shared;
  for (const Term& term : terms) {
    if (term.lane == Op::shared_lane) {
      shared.push_back(term.value);
    } else {
      of_shard[cut.shard_of(term.lane)].push_back(term);
    }
  }
  std::vector<ValueId> shards;
  for (const auto& [shard, mine] : of_shard) {
    const int last = std::ranges::max(mine, {}, &Term::lane).lane;
    shards.push_back(add_all(builder, values_of(mine), last));
  }
  if (!shards.empty()) shared.insert(shared.begin(), add_all(builder, shards, Op::shared_lane));
  return add_all(builder, shared, Op::shared_lane);
}

bool adds_shards(const Graph& graph, OpId id, const BatchCut& cut) {
  const Op& op = graph[id];
  if (cut.shards < 2 || op.name() != "sum" || op.lane != Op::shared_lane) return false;
  int last = -1, shards = 0;
  for (const ValueId term : op.operands) {
    const int lane = lane_of(graph, term);
    if (lane == Op::shared_lane || cut.shard_of(lane) <= last) return false;
    last = cut.shard_of(lane);
    ++shards;
  }
  return shards > 1;
}

}  // namespace arenite::graph
