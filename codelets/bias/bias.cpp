// bias_grad(gradient [..., C]) -> [C]: the sum over all axes but the last.
#include <arenite/expr/builder.hpp>

#include "codelets/last_axis.hpp"
#include "codelets/map/map.hpp"

namespace arenite::codelets {

std::vector<Kernel> bias_grad_kernels();

namespace {

graph::ElementFormula formula_of(const OpView& op) {
  const int last = op.operand(0).shape.rank() - 1;
  expr::Builder formula;
  const auto element = formula.operand(expr::Type::float32);
  graph::ElementFormula made{.expression = formula.finish({last == 0 ? element : sum(element)}),
                             .keeps_axes = false,
                             .is_exact = false};
  for (int axis = 0; axis < last; ++axis) made.axes.push_back(axis);
  return made;
}

}  // namespace

void register_bias(Registry& registry) {
  registry.add({.name = "bias_grad",
                .operands = {{"gradient"}},
                .results = {"dbias"},
                .infer = [](const OpView& op) -> Results {
                  return {{DType::float32, {expect_last_axis(op, 0).at(-1)}}};
                },
                .formula = formula_of,
                .cost = map_cost},
               bias_grad_kernels());
}

}  // namespace arenite::codelets
