// mul(a, b) = a · b, element by element; b is repeated along the axes where its size is 1.
#include "codelets/pairwise.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<Kernel> mul_kernels();

void register_mul(Registry& registry) {
  graph::OperatorDefinition mul = pairwise("mul");
  mul.gradient = [](graph::GradientContext& context) {
    const ValueId gradient = context.result_gradient(0);
    if (!gradient) return;
    graph::Builder& builder = context.builder();
    const ValueId a = context.operand(0), b = context.operand(1);
    if (context.wants(0)) context.set(0, builder.add1("mul", {gradient, b}));
    if (context.wants(1))
      context.set(1, summed_like(builder, builder.add1("mul", {gradient, a}), b));
  };
  mul.simplify = [](const OpView& op) {
    return simplify_pairwise(op, [](auto a, auto b) { return a * b; });
  };
  registry.add(std::move(mul), mul_kernels());
}

}  // namespace arenite::codelets
