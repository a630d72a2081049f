// sum_to(x, shape): the sum over the axes where `shape` is 1 and x is not; the rank stays. What
// broadcast_to repeats, backwards. Sums are taken in double, in an order that the shape alone
// decides.
#include <arenite/expr/builder.hpp>

#include "codelets/broadcast.hpp"
#include "codelets/map/map.hpp"

namespace arenite::codelets {

namespace {

Results infer(const OpView& op) {
  expect_real(op, 0);
  const graph::Value& x = op.operand(0);
  const std::vector<std::int64_t>& dims = op.attributes().integers("shape");
  if (!fills(dims, x.shape.dims())) {
    fail({.found = "shape=" + graph::to_string(*op.attributes().find("shape")),
          .expected = to_string(x.shape) + ", the shape of 'x', where any size may be 1"});
  }
  return {{x.type, Shape(dims)}};
}

graph::ElementFormula formula_of(const OpView& op) {
  const Shape &x = op.operand(0).shape, &y = op.result(0).shape;
  expr::Builder formula;
  const auto element = formula.operand(type_of(op.operand(0).type));
  graph::ElementFormula made{formula.finish({x == y ? element : sum(element)})};
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] != y[axis]) made.axes.push_back(axis);
  }
  return made;
}

/// The sum over the first axis is one over shares, too.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  if (!share.has_rows(0)) return std::nullopt;
  if (op.result(0).shape[0] == op.operand(0).shape[0])
    return all_rows(op, with_rows(op, "shape", share));
  return graph::OfShare{.results = {graph::OfShare::Result::sum}, .attributes = op.attributes()};
}

}  // namespace

void register_sum_to(Registry& registry) {
  registry.add(
      {.name = "sum_to",
       .operands = {{"x"}},
       .results = {"y"},
       .attributes = {{"shape", graph::AttributeType::integers, {}}},
       .infer = infer,
       .gradient = gradient_of_first([](graph::GradientContext& context, ValueId gradient) {
         return repeated_like(context.builder(), gradient, context.operand(0));
       }),
       .formula = formula_of,
       .cost = map_cost,
       .of_share = of_share},
      {});
}

}  // namespace arenite::codelets
