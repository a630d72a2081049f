// reduce(x, …, axes, keep=0; formula): a formula in which sum(…), max(…) and their like are of all
// elements along the axes: of groups of elements. What such functions alone tell apart is one for
// each group, of a shape without these axes, or, with keep=1, with ones in their place; other
// results have an element for each of the operands'. Operands are repeated as in a map.
//
//   $3 = reduce($1, axes=[1]) { max($1) }
//   $4 = reduce($1, axes=[1]) { e = exp($1 - max($1)); yield e / sum(e); }
//
// Sums are taken in double, in an order that the shape alone decides. A gradient is a reduction
// again, or a map.
#include <arenite/expr/text.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

/// Of which no element has none.
bool wants_elements(expr::Function function) noexcept {
  return expr::is_reduction(function) && function != expr::Function::sum &&
         function != expr::Function::product;
}

graph::ElementFormula formula_of(const OpView& op) {
  return {.expression = parsed(op),
          .axes = op.attributes().integers("axes"),
          .keeps_axes = op.integer("keep") == 1};
}

Results infer(const OpView& op) {
  const graph::ElementFormula given = formula_of(op);
  const expr::Expression& formula = given.expression;
  if (given.axes.empty())
    fail({.found = "axes=[]", .expected = "at least one axis", .hint = "map reduces none"});
  if (!formula.reduces()) {
    fail({.found = "a formula that reduces nothing",
          .expected = "one with sum(…), max(…) or their like",
          .hint = "map takes it"});
  }
  expect_flag(op, "keep");
  const Space space = space_of(op, given);
  expect_axes_of(formula, space.whole);
  for (const expr::Node& node : formula.nodes()) {
    if (space.group() > 0 || !wants_elements(node.function) || node.type == expr::Type::boolean)
      continue;
    fail({.found = "groups of no element of " + to_string(space.whole),
          .expected = "at least one, for min, max, argmin and argmax"});
  }
  std::vector<std::int64_t> grouped;
  for (int axis = 0; axis < space.whole.rank(); ++axis) {
    if (!space.reduces(axis)) grouped.push_back(space.whole[axis]);
    if (space.reduces(axis) && op.integer("keep") == 1) grouped.push_back(1);
  }
  const auto varies = formula.varying();
  Results results;
  for (std::size_t i = 0; i < formula.results().size(); ++i) {
    results.push_back({dtype_of(formula.result_type(i)),
                       varies[formula.results()[i]] ? space.whole : Shape(grouped)});
  }
  return results;
}

/// Whether results are sums that groups of fewer elements make parts of.
bool are_sums(const expr::Expression& formula) {
  std::vector<bool> is_result(formula.nodes().size(), false);
  for (const expr::NodeId result : formula.results()) is_result[result] = true;
  for (expr::NodeId node = 0; node < is_result.size(); ++node) {
    const expr::Function function = formula[node].function;
    if (is_result[node] != (function == expr::Function::sum)) return false;
    if (function == expr::Function::count || (expr::is_reduction(function) && !is_result[node]))
      return false;
    for (const expr::NodeId source : expr::sources_of(formula[node])) {
      if (is_result[source]) return false;
    }
  }
  return true;
}

}  // namespace

/// Some groups, of rows that operands have or that all share; or a part of each.
std::optional<graph::OfShare> share_of_groups(const OpView& op, const graph::Share& share) {
  const Elementwise made(op);
  const Space& space = made.space;
  if (space.whole.rank() == 0 || space.whole[0] == 1) return std::nullopt;
  if (space.reduces(0) && !are_sums(made.formula)) return std::nullopt;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    const Shape& own = op.operand(i).shape;
    const bool has_rows = own.rank() == space.whole.rank() && own[0] == space.whole[0];
    if (!share.is(has_rows ? graph::Split::rows : graph::Split::none, i)) return std::nullopt;
  }
  for (const expr::Node& node : made.formula.nodes()) {
    if (node.function == expr::Function::index && node.payload == 0) return std::nullopt;
  }
  if (!space.reduces(0)) return all_rows(op, op.attributes());
  return graph::OfShare{.results = std::vector(op.op().results.size(), graph::OfShare::Result::sum),
                        .attributes = op.attributes()};
}

namespace {

graph::Attributes attributes_of(const graph::ElementFormula& formula) {
  return {{"axes", formula.axes},
          {"keep", std::int64_t{formula.keeps_axes}},
          {map_expression, expr::print(formula.expression)}};
}

}  // namespace

void register_reduce(Registry& registry) {
  registry.add({.name = "reduce",
                .operands = {{"x"}},
                .variadic = 1,
                .results = {"y"},
                .attributes = {{"axes", graph::AttributeType::integers, {}},
                               {"keep", graph::AttributeType::integer, std::int64_t{0}},
                               {map_expression, graph::AttributeType::text, {}}},
                .infer = infer,
                .gradient = map_gradient,
                .in_place = in_place(most_in_place, most_results_in_place),
                .formula = formula_of,
                .cost = map_cost,
                .does = graph::FormulaOf{.reduces = true, .attributes = attributes_of},
                .of_share = share_of_groups},
               {});
}

}  // namespace arenite::codelets
