// sum(a, b, …): element by element, of values of one shape and type. The operands are added in a
// balanced tree, (a + b) + (c + d), so that the bits depend on nothing but their order.
#include <arenite/expr/builder.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"
#include "src/base/sum_tree.hpp"

namespace arenite::codelets {

namespace {

Results infer(const OpView& op) {
  const graph::Value& first = op.operand(0);
  if (first.type == DType::uint8) {
    fail({.found = operand_text(op, 0) + " of type uint8",
          .expected = "float32, float64, int64 or int32"});
  }
  for (std::size_t i = 1; i < op.operand_count(); ++i) {
    const graph::Value& other = op.operand(i);
    if (other.type == first.type && other.shape == first.shape) continue;
    const auto text = [](const graph::Value& v) {
      return std::string(to_string(v.type)) + " " + to_string(v.shape);
    };
    fail({.found = "operand " + std::to_string(i) + " (" + other.name + ") of " + text(other),
          .expected = text(first) + " like operand 0 (" + first.name + ")"});
  }
  return {{first.type, first.shape}};
}

/// Every term's gradient is the sum's own; nothing is copied.
void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  if (!gradient) return;
  for (std::size_t i = 0; i < context.forward().operand_count(); ++i) {
    if (context.wants(i)) context.set(i, gradient);
  }
}

/// Of one term.
std::optional<Simpler> simplify(const OpView& op) {
  return op.operand_count() == 1 ? is_value(op.op().operands[0]) : std::nullopt;
}

expr::Value tree(std::span<const expr::Value> terms) {
  if (terms.size() == 1) return terms[0];
  const std::size_t middle = middle_of(0, terms.size());
  return tree(terms.first(middle)) + tree(terms.subspan(middle));
}

graph::ElementFormula formula_of(const OpView& op) {
  expr::Builder formula;
  std::vector<expr::Value> terms;
  while (terms.size() < op.operand_count())
    terms.push_back(formula.operand(type_of(op.operand(0).type)));
  return {formula.finish({tree(terms)})};
}

}  // namespace

void register_sum(Registry& registry) {
  registry.add({.name = "sum",
                .operands = {{"terms"}},
                .variadic = 1,
                .results = {"y"},
                .infer = infer,
                .gradient = gradient,
                .in_place = {{0, 0}},
                .formula = formula_of,
                .cost = map_cost,
                .simplify = simplify,
                .of_share = rows_of_all},
               {});
}

}  // namespace arenite::codelets
