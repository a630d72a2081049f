// add(a, b) = a + b, element by element; b is repeated along the axes where its size is 1. `sum`
// adds any number of values of one shape.
#include "codelets/pairwise.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<Kernel> add_kernels();

void register_add(Registry& registry) {
  graph::OperatorDefinition add = pairwise("add");
  add.gradient = [](graph::GradientContext& context) {
    const ValueId gradient = context.result_gradient(0);
    if (!gradient) return;
    if (context.wants(0)) context.set(0, gradient);
    if (context.wants(1))
      context.set(1, summed_like(context.builder(), gradient, context.operand(1)));
  };
  add.simplify = [](const OpView& op) {
    return simplify_pairwise(op, [](auto a, auto b) { return a + b; });
  };
  registry.add(std::move(add), add_kernels());
}

}  // namespace arenite::codelets
