#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

/// `sums_as` has to name an operator that takes the operands of several such ops.
void check_rules(const OperatorTable& table) {
  for (const std::string& name : table.names()) {
    const auto definition = table.find(name);
    if (definition->sums_as.empty()) continue;
    const auto sum = table.find(definition->sums_as);
    const std::size_t group = definition->operands.size();
    if (sum && sum->operands.size() == group && sum->variadic == group &&
        sum->results.size() == 1 && definition->results.size() == 1) {
      continue;
    }
    fail({.found = "operator '" + name + "', whose sums '" + definition->sums_as + "' gives",
          .expected = "a registered operator with one result that takes groups of " +
                      std::to_string(group) + " operands, any number of times"});
  }
}

class SumMerger {
 public:
  explicit SumMerger(const Graph& graph)
      : graph_(graph), readers_(graph), role_(graph.op_count(), Role::none) {
    for (OpId id : graph_[Graph::body].ops) {
      if (!mergeable(id)) continue;
      for (ValueId term : graph_[id].operands) role_[graph_[term].producer.index] = Role::term;
      role_[id.index] = Role::sum;
      ++merged_;
    }
  }

  int merged() const noexcept { return merged_; }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    if (role_[id.index] == Role::sum) add_merged(id, map, builder);
    return role_[id.index] != Role::none;
  }

 private:
  enum class Role : std::uint8_t { none, term, sum };

  /// A sum of results that nothing else reads, all of ops that differ in their operands only.
  bool mergeable(OpId id) const {
    const Op& sum = graph_[id];
    if (sum.name() != "sum" || sum.operands.size() < 2) return false;
    const OpId first = graph_[sum.operands[0]].producer;
    if (!first || graph_[first].definition->sums_as.empty()) return false;
    return std::all_of(sum.operands.begin(), sum.operands.end(), [&](ValueId term) {
      const OpId producer = graph_[term].producer;
      return producer && alike(graph_[producer], graph_[first]) &&
             graph_[producer].phase == sum.phase && !readers_.only_for(term, id) &&
             only_reads(graph_[producer]) && !readers_.moved(producer, producer, id);
    });
  }

  static bool alike(const Op& a, const Op& b) {
    const auto whole = [](const Op& op) {
      return op.operands.size() == op.definition->operands.size() &&
             std::all_of(op.operands.begin(), op.operands.end(), [](ValueId v) { return bool(v); });
    };
    return a.definition == b.definition && a.attributes == b.attributes && whole(a) && whole(b);
  }

  void add_merged(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const Op& sum = graph_[id];
    std::vector<ValueId> operands;
    for (ValueId term : sum.operands) {
      for (ValueId operand : graph_[graph_[term].producer].operands)
        operands.push_back(map[operand.index]);
    }
    const Op& first = graph_[graph_[sum.operands[0]].producer];
    builder.context = {.phase = sum.phase, .lane = sum.lane, .where = first.where};
    const ValueId result = builder.add1(first.definition->sums_as, operands, first.attributes);
    map[sum.results[0].index] = result;
    copy_placement(graph_, sum.results[0], builder.graph(), result);
  }

  const Graph& graph_;
  const Readers readers_;
  std::vector<Role> role_;  // by op
  int merged_ = 0;
};

}  // namespace

int merge_sums(Graph& graph, const OperatorTable& table) {
  expect_before_select(graph, "merge_sums");
  check_rules(table);
  const SumMerger merger(graph);
  if (merger.merged() == 0) return 0;
  graph = rebuild(graph, table, [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
    return merger.replace(id, map, builder);
  });
  return merger.merged();
}

}  // namespace arenite::graph
