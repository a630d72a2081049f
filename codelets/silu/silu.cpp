// silu(x) = x · sigmoid(x), element by element; a NaN stays a NaN. The output does not tell x, so
// that the gradient reads x itself.
#include "codelets/image.hpp"
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/share.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> silu_kernels();
std::vector<runtime::Kernel> silu_grad_kernels();

namespace {

using graph::OpView;

graph::Cost cost(const OpView& op) {
  // About twenty operations an exponential.
  return {.flops = 25 * static_cast<double>(op.result(0).shape.elements()),
          .bytes = bytes_touched(op)};
}

}  // namespace

void register_silu(Registry& registry) {
  graph::OperatorDefinition silu;
  silu.name = "silu";
  silu.operands = {{"x"}};
  silu.results = {"y"};
  silu.in_place = {{0, 0}};
  silu.of_share = rows_of_first<>;
  silu.cost = cost;
  silu.infer = [](const OpView& op) -> std::vector<graph::ResultType> {
    expect_real(op, 0);
    return {{op.operand(0).type, op.operand(0).shape}};
  };
  silu.gradient = [](graph::GradientContext& context) {
    const graph::ValueId gradient = context.result_gradient(0);
    if (!gradient || !context.wants(0)) return;
    context.set(0, context.builder().add1("silu_grad", {gradient, context.operand(0)}));
  };
  registry.add(std::move(silu), silu_kernels());

  graph::OperatorDefinition silu_grad;
  silu_grad.name = "silu_grad";
  silu_grad.operands = {{"gradient"}, {"x"}};
  silu_grad.results = {"dx"};
  silu_grad.in_place = {{0, 0}};
  silu_grad.cost = cost;
  silu_grad.infer = [](const OpView& op) -> std::vector<graph::ResultType> {
    expect_real(op, 0);
    expect_like(op, 1, 0);
    return {{op.operand(0).type, op.operand(0).shape}};
  };
  registry.add(std::move(silu_grad), silu_grad_kernels());
}

}  // namespace arenite::codelets
