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

Results infer(const OpView& op) {
  const expr::Expression formula = written_formula_of(op);
  const Space space = space_of(op);
  expect_axes_of(formula, space.whole);
  expect_flag(op, "keep");
  if (op.attributes().integers("axes").empty())
    fail({.found = "axes=[]", .expected = "at least one axis", .hint = "map reduces none"});
  if (!formula.reduces()) {
    fail({.found = "a formula that reduces nothing",
          .expected = "one with sum(…), max(…) or their like",
          .hint = "map takes it"});
  }
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

/// Some groups, of rows that operands have or that all share.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  const Space space = space_of(op);
  if (space.whole.rank() == 0 || space.reduces(0) || space.whole[0] == 1) return std::nullopt;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    const Shape& own = op.operand(i).shape;
    const bool has_rows = own.rank() == space.whole.rank() && own[0] == space.whole[0];
    if (!share.is(has_rows ? graph::Split::rows : graph::Split::none, i)) return std::nullopt;
  }
  const expr::Expression formula = written_formula_of(op);
  for (const expr::Node& node : formula.nodes()) {
    if (node.function == expr::Function::index && node.payload == 0) return std::nullopt;
  }
  return all_rows(op, op.attributes());
}

}  // namespace

void register_reduce(Registry& registry) {
  registry.add({.name = reduce_name,
                .operands = {{"x"}},
                .variadic = 1,
                .results = {"y"},
                .attributes = {{"axes", graph::AttributeType::integers, {}},
                               {"keep", graph::AttributeType::integer, std::int64_t{0}},
                               {map_expression, graph::AttributeType::text, {}}},
                .infer = infer,
                .gradient = map_gradient,
                .cost = map_cost,
                .of_share = of_share},
               map_kernels());
}

}  // namespace arenite::codelets
