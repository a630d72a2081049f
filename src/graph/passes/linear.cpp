#include "src/graph/passes/linear.hpp"

#include <arenite/expr/expression.hpp>
#include <arenite/graph/operator.hpp>

#include "src/graph/passes/batch_forms.hpp"
#include "src/graph/views.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

enum class Degree : std::uint8_t { constant, linear, other };

/// Of which not both are constant: a constant beside what is linear is none of each part's.
Degree sum(Degree a, Degree b) {
  return a == Degree::linear && b == Degree::linear ? Degree::linear : Degree::other;
}

Degree product(Degree a, Degree b) {
  return a == Degree::constant ? b : b == Degree::constant ? a : Degree::other;
}

Degree degree(const expr::Node& node, const std::vector<Degree>& by_node,
              const std::vector<Degree>& operands) {
  if (node.function == expr::Function::operand) return operands[node.payload];
  const auto sources = expr::sources_of(node);
  const auto of = [&](std::size_t i) { return by_node[sources[i]]; };
  if (std::ranges::all_of(sources, [&](expr::NodeId s) { return by_node[s] == Degree::constant; }))
    return Degree::constant;
  switch (node.function) {
    case expr::Function::negate:
    case expr::Function::cast:
    case expr::Function::sum:
      return of(0);
    case expr::Function::add:
    case expr::Function::subtract:
      return sum(of(0), of(1));
    case expr::Function::multiply:
      return product(of(0), of(1));
    case expr::Function::fma:
      return sum(product(of(0), of(1)), of(2));
    case expr::Function::divide:
      return of(1) == Degree::constant ? of(0) : Degree::other;
    default:
      return Degree::other;
  }
}

/// Of an op's only result, of what its operands are.
Degree degree(const Graph& graph, const Op& op, const std::vector<Degree>& operands) {
  if (const auto view = result_views(graph, op)[0]) return operands[view->operand];
  if (!op.definition->formula) return Degree::other;
  const ElementFormula made = op.definition->formula({graph, op});
  std::vector<Degree> by_node;
  for (const expr::Node& node : made.expression.nodes()) {
    const bool is_real = node.type == expr::Type::float32 || node.type == expr::Type::float64;
    const Degree found = degree(node, by_node, operands);
    by_node.push_back(found == Degree::linear && !is_real ? Degree::other : found);
  }
  return by_node[made.expression.results()[0]];
}

}  // namespace

std::vector<bool> linear_in_sums(const Graph& graph, const BatchForms& forms) {
  std::vector<Degree> degrees(graph.value_count(), Degree::constant);
  for (std::size_t i = 0; i < degrees.size(); ++i) {
    const auto form = forms.of(ValueId(i));
    if (form) degrees[i] = form == OfShare::Result::sum ? Degree::linear : Degree::other;
  }
  for (const OpId id : graph[Graph::body].ops) {
    if (forms.by_share(id)) continue;
    const Op& op = graph[id];
    Degree most = Degree::constant;
    std::vector<Degree> operands;
    forms.for_each_read(id, [&](ValueId read) { most = std::max(most, degrees[read.index]); });
    for (const ValueId operand : op.operands)
      operands.push_back(operand ? degrees[operand.index] : Degree::constant);
    const bool can_be = op.regions.empty() && op.results.size() == 1;
    if (most == Degree::linear) most = can_be ? degree(graph, op, operands) : Degree::other;
    for (const ValueId result : op.results) degrees[result.index] = most;
  }
  std::vector<bool> linear;
  for (const Degree found : degrees) linear.push_back(found == Degree::linear);
  return linear;
}

std::vector<OpId> ops_from_sums(const Graph& graph, const BatchForms& forms, ValueId value) {
  const std::vector<bool> linear = linear_in_sums(graph, forms);
  std::vector<bool> needed(graph.value_count());
  needed[value.index] = true;
  std::vector<OpId> ops;
  const auto& all = graph[Graph::body].ops;
  for (auto id = all.rbegin(); id != all.rend(); ++id) {
    const Op& op = graph[*id];
    const bool makes = !forms.by_share(*id) && std::ranges::any_of(op.results, [&](ValueId result) {
      return needed[result.index] && linear[result.index];
    });
    if (!makes) continue;
    ops.push_back(*id);
    for (const ValueId operand : op.operands) {
      if (operand) needed[operand.index] = true;
    }
  }
  std::ranges::reverse(ops);
  return ops;
}

}  // namespace arenite::graph
