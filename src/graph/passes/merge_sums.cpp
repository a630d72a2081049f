#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include "src/graph/passes/rebuild.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

class SumMerger {
 public:
  explicit SumMerger(const Graph& graph)
      : source_(graph), readers_(graph.value_count(), 0), part_of_(graph.op_count()) {
    for (OpId id : source_[Graph::body].ops) {
      for (ValueId operand : source_[id].operands) {
        if (operand) ++readers_[operand.index];
      }
    }
    for (ValueId output : source_.outputs) ++readers_[output.index];
    for (OpId id : source_[Graph::body].ops) {
      if (!mergeable(id)) continue;
      for (ValueId term : source_[id].operands) part_of_[source_[term].producer.index] = id;
      ++merged_;
    }
  }

  int merged() const noexcept { return merged_; }

  Graph rebuild(const OperatorTable& table) const {
    Graph target;
    Builder builder(target, table);
    std::vector<ValueId> map(source_.value_count());
    for (std::size_t i = 0; i < source_.value_count(); ++i) {
      if (!source_[ValueId(i)].producer) map[i] = copy_declared(source_, ValueId(i), builder);
    }
    for (OpId id : source_[Graph::body].ops) {
      if (part_of_[id.index]) continue;
      const Op& op = source_[id];
      const auto& terms = op.operands;
      const bool merged = op.name() == "sum" && part_of_[source_[terms[0]].producer.index] == id;
      if (merged) {
        add_merged(id, map, builder);
      } else {
        copy_op(source_, id, op.lane, map, builder);
      }
    }
    for (ValueId output : source_.outputs) target.outputs.push_back(map[output.index]);
    return target;
  }

 private:
  /// A sum of results that nothing else reads, all of ops that differ in their operands only.
  bool mergeable(OpId id) const {
    const Op& sum = source_[id];
    if (sum.name() != "sum" || sum.operands.size() < 2) return false;
    const OpId first = source_[sum.operands[0]].producer;
    if (!first || source_[first].definition->sums_as.empty()) return false;
    return std::all_of(sum.operands.begin(), sum.operands.end(), [&](ValueId term) {
      const OpId producer = source_[term].producer;
      if (!producer) return false;
      const Op& op = source_[producer];
      return op.definition == source_[first].definition && op.results.size() == 1 &&
             op.attributes == source_[first].attributes && op.phase == sum.phase &&
             readers_[term.index] == 1 && reads_only(op) && unchanged(producer, id);
    });
  }

  static bool reads_only(const Op& op) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.effect(i) != Effect::read) return false;
    }
    return true;
  }

  /// Nobody writes what op `from` reads before the sum, where it will be read instead.
  bool unchanged(OpId from, OpId sum) const {
    const auto& ops = source_[Graph::body].ops;
    for (auto at = std::find(ops.begin(), ops.end(), from) + 1; *at != sum; ++at) {
      for (const auto& access : accesses(source_, *at)) {
        if (!access.writes) continue;
        for (ValueId operand : source_[from].operands) {
          if (operand && source_.root(operand) == access.storage) return false;
        }
      }
    }
    return true;
  }

  void add_merged(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const Op& sum = source_[id];
    std::vector<ValueId> operands;
    for (ValueId term : sum.operands) {
      for (ValueId operand : source_[source_[term].producer].operands)
        operands.push_back(operand ? map[operand.index] : ValueId{});
    }
    const Op& first = source_[source_[sum.operands[0]].producer];
    builder.context = {.phase = sum.phase, .lane = sum.lane, .where = first.where};
    const ValueId result = builder.add1(first.definition->sums_as, operands, first.attributes);
    map[sum.results[0].index] = result;
    copy_placement(source_, sum.results[0], builder.graph(), result);
  }

  const Graph& source_;
  std::vector<int> readers_;
  std::vector<OpId> part_of_;  // op → the sum it becomes a part of
  int merged_ = 0;
};

}  // namespace

int merge_sums(Graph& graph, const OperatorTable& table) {
  if (graph.region_count() > 1) return 0;
  const SumMerger merger(graph);
  if (merger.merged() == 0) return 0;
  Graph merged = merger.rebuild(table);
  verify(merged);
  graph = std::move(merged);
  return merger.merged();
}

}  // namespace arenite::graph
