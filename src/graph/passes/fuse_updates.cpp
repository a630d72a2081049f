#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

namespace arenite::graph {
namespace {

using Definition = std::shared_ptr<const OperatorDefinition>;

constexpr std::size_t gradient_operand = 1;  // of an update

/// The fused operators by (gradient, update).
using FusedUpdates = std::map<std::pair<std::string, std::string>, Definition, std::less<>>;

/// A fused operator takes what the two take, and has their attributes.
void check_rule(const OperatorTable& table, const OperatorDefinition& fused) {
  const auto gradient = table.find(fused.update_fusion->gradient),
             update = table.find(fused.update_fusion->update);
  const bool fits =
      gradient && update && gradient->results.size() == 1 && update->variadic == 0 &&
      update->operands.size() > gradient_operand &&
      fused.results.size() == update->results.size() && fused.variadic == gradient->variadic &&
      fused.operands.size() == update->operands.size() - 1 + gradient->operands.size() &&
      fused.attributes.size() == update->attributes.size() + gradient->attributes.size();
  if (fits) return;
  fail({.found = "operator '" + fused.name + "' fused from the gradient '" +
                 fused.update_fusion->gradient + "' and the update '" +
                 fused.update_fusion->update + "'",
        .expected = "registered operators, the first with one result, the second with those of the "
                    "fused one and a gradient as its operand 1, that have its operands and "
                    "attributes between them"});
}

FusedUpdates fused_updates(const OperatorTable& table) {
  FusedUpdates all;
  for (const std::string& name : table.names()) {
    auto definition = table.find(name);
    if (!definition->update_fusion) continue;
    check_rule(table, *definition);
    const auto& [gradient, update] = *definition->update_fusion;
    all.emplace(std::pair{gradient, update}, std::move(definition));
  }
  return all;
}

class UpdateFuser {
 public:
  UpdateFuser(const Graph& graph, const OperatorTable& table, Remarks* remarks)
      : graph_(graph), readers_(graph), is_gradient_(graph.op_count()) {
    const FusedUpdates fused = fused_updates(table);
    for (OpId update : graph_[Graph::body].ops) {
      const Op& op = graph_[update];
      if (op.operands.size() <= gradient_operand || !op.operands[gradient_operand]) continue;
      const OpId gradient = graph_[op.operands[gradient_operand]].producer;
      if (!gradient) continue;
      const auto found =
          fused.find(std::pair{std::string(graph_[gradient].name()), std::string(op.name())});
      if (found == fused.end()) continue;
      const Obstacle why = apart(gradient, update);
      note(
          remarks, graph_, why,
          [&] {
            return describe(graph_, std::array{gradient, update});
          },
          [&] { return found->second->name; });
      if (why) continue;
      is_gradient_[gradient.index] = true;
      updates_.emplace(update, Pair{gradient, found->second});
    }
  }

  int count() const noexcept { return static_cast<int>(updates_.size()); }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) const {
    if (const auto found = updates_.find(id); found != updates_.end())
      add_fused(found->second, id, map, builder);
    return is_gradient_[id.index] || updates_.contains(id);
  }

 private:
  struct Pair {
    OpId gradient;
    Definition fused;
  };

  /// Nothing where the gradient is as nobody asked for it by hand, and sees the same when it is
  /// made as late as the update, piece by piece, while the update goes on.
  Obstacle apart(OpId gradient, OpId update) const {
    const ValueId result = graph_[gradient].results[0];
    if (const Obstacle why = readers_.only_for(result, update)) return why;
    if (!as_made(graph_, result)) return {.words = "%v is placed by hand", .value = result};
    if (reads_renewed(graph_, gradient, update))
      return {.words = "%o updates what is read besides", .op = update};
    return readers_.moved(gradient, gradient, update);
  }

  void add_fused(const Pair& pair, OpId id, std::vector<ValueId>& map, Builder& builder) const {
    const Op &update = graph_[id], &gradient = graph_[pair.gradient];
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < update.definition->operands.size(); ++i) {
      if (i == gradient_operand) continue;
      operands.push_back(operand_of(update, i));
    }
    operands.insert(operands.end(), gradient.operands.begin(), gradient.operands.end());
    Attributes attributes = update.attributes;
    for (const AttributeSchema& schema : gradient.definition->attributes)
      attributes.set(schema.name, *gradient.attributes.find(schema.name));
    builder.context = {.phase = update.phase, .lane = update.lane, .where = update.where};
    map_results(update, builder.add(pair.fused->name, mapped(operands, map), attributes), map);
  }

  const Graph& graph_;
  const Readers readers_;
  std::vector<bool> is_gradient_;  // by op: one that an update makes itself
  std::map<OpId, Pair> updates_;
};

}  // namespace

int fuse_updates(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  expect_before_select(graph, "fuse_updates");
  return rewrite(graph, table, UpdateFuser(graph, table, remarks));
}

}  // namespace arenite::graph
