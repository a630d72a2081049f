#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/fused.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/shards.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

using Sum = Fused<SumOf>;

std::vector<Sum> sums(const OperatorTable& table) {
  std::vector<Sum> all = fused_operators<SumOf>(table);
  expect_one_each(all);
  for (const auto& [by, form] : all) {
    const auto term = table.find(form->of);
    const std::size_t group = by->operands.size();
    if (term && term->operands.size() == group && by->variadic == group &&
        term->results.size() == 1 && by->results.size() == 1) {
      continue;
    }
    fail({.found = "operator '" + by->name + "' with " + by->expected_operands() +
                   " operands, which sums '" + form->of + "'",
          .expected = "one result, and any number of all the operands that a registered operator "
                      "with one result has"});
  }
  return all;
}

class SumMerger {
 public:
  SumMerger(const Graph& graph, const OperatorTable& table, const BatchCut& cut, bool in_trees,
            Remarks* remarks)
      : graph_(graph),
        sums_(sums(table)),
        cut_(cut),
        in_trees_(in_trees),
        readers_(graph),
        role_(graph.op_count(), Role::none) {
    for (OpId id : graph_[Graph::body].ops) {
      const auto& terms = graph_[id].operands;
      const Obstacle why = apart(id);
      const auto first = [&] { return graph_[graph_[terms[0]].producer].definition; };
      note(
          remarks, graph_, why,
          [&] {
            return describe(graph_, id) + " of " + std::to_string(terms.size()) + " results of " +
                   first()->name;
          },
          [&] { return merged(terms)->by->name; });
      if (why) continue;
      for (ValueId term : terms) role_[graph_[term].producer.index] = Role::term;
      role_[id.index] = adds_shards(graph, id, cut) ? Role::tree : Role::sum;
      ++merged_;
    }
  }

  int count() const noexcept { return merged_; }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const Role role = role_[id.index];
    if (role == Role::sum || role == Role::tree) add_merged(id, map, builder);
    return role != Role::none;
  }

 private:
  enum class Role : std::uint8_t { none, term, sum, tree };

  /// From a sum of results that nothing else reads, all of ops that differ in their operands only.
  Obstacle apart(OpId id) const {
    const Op& sum = graph_[id];
    if (sum.name() != "sum" || sum.operands.size() < 2) return not_meant;
    const OpId first = graph_[sum.operands[0]].producer;
    const Sum* fused = merged(sum.operands);
    if (fused == nullptr) return not_meant;
    for (ValueId term : sum.operands) {
      const OpId maker = graph_[term].producer;
      if (!maker || !alike(graph_[maker], graph_[first]) || graph_[maker].phase != sum.phase)
        return {.words = "%v is not made as the first term is", .value = term};
      if (const Obstacle why = readers_.only_for(term, id)) return why;
      if (const Obstacle why = readers_.moved(maker, maker, id)) return why;
    }
    if (!adds_shards(graph_, id, cut_)) return {};
    const auto adds_in_tree = [](const AttributeSchema& attribute) {
      return attribute.name == sum_tree && attribute.type == AttributeType::integer;
    };
    if (!in_trees_ || std::ranges::none_of(fused->by->attributes, adds_in_tree))
      return {"it adds shards in a tree"};
    const std::int64_t kept = bytes_kept(sum);
    return kept <= bytes(sum.results[0])
               ? Obstacle{}
               : Obstacle{.words = "it adds shards, and would keep %n bytes of all of them",
                          .number = kept};
  }

  /// What sums ops like the first term's.
  const Sum* merged(const std::vector<ValueId>& terms) const {
    const OpId first = graph_[terms[0]].producer;
    return first ? find(sums_, graph_[first].name()) : nullptr;
  }

  std::int64_t bytes(ValueId id) const {
    const Value& value = graph_[id];
    return byte_size(value.type, value.shape, value.layout);
  }

  /// Of what the terms are made of, until all shards are there.
  std::int64_t bytes_kept(const Op& sum) const {
    std::int64_t kept = 0;
    for (ValueId term : sum.operands) {
      for (ValueId operand : graph_[graph_[term].producer].operands)
        kept += is_transient(graph_.root_storage(operand).cls) ? bytes(operand) : 0;
    }
    return kept;
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
    Attributes attributes = first.attributes;
    if (role_[id.index] == Role::tree) attributes.set(sum_tree, std::int64_t{1});
    const ValueId result = builder.add1(merged(sum.operands)->by->name, operands, attributes);
    map[sum.results[0].index] = result;
    copy_placement(graph_, sum.results[0], builder.graph(), result);
  }

  const Graph& graph_;
  const std::vector<Sum> sums_;
  const BatchCut cut_;
  const bool in_trees_;
  const Readers readers_;
  std::vector<Role> role_;  // by op
  int merged_ = 0;
};

}  // namespace

int merge_sums(Graph& graph, const OperatorTable& table, const BatchCut& cut, bool in_trees,
               Remarks* remarks) {
  expect_before_select(graph, "merge_sums");
  return rewrite(graph, table, SumMerger(graph, table, cut, in_trees, remarks));
}

}  // namespace arenite::graph
