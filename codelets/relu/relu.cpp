// relu(x) = max(x, 0), element by element, float32 or float64; a NaN stays a NaN. The gradient
// reads the output, not the input, so that the forward op may run in place.
#include "codelets/image.hpp"
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/share.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> relu_kernels();
std::vector<runtime::Kernel> relu_grad_kernels();

namespace {

using graph::OpView;

graph::Cost one_flop_each(const OpView& op) {
  return {.flops = static_cast<double>(op.result(0).shape.elements()), .bytes = bytes_touched(op)};
}

}  // namespace

void register_relu(Registry& registry) {
  graph::OperatorDefinition relu;
  relu.name = "relu";
  relu.operands = {{"x"}};
  relu.results = {"y"};
  relu.in_place = {{0, 0}};
  relu.of_share = rows_of_first<>;
  relu.cost = one_flop_each;
  relu.infer = [](const OpView& op) -> std::vector<graph::ResultType> {
    expect_real(op, 0);
    return {{op.operand(0).type, op.operand(0).shape}};
  };
  relu.gradient = [](graph::GradientContext& context) {
    const graph::ValueId gradient = context.result_gradient(0);
    if (!gradient || !context.wants(0)) return;
    context.set(0, context.builder().add1("relu_grad", {gradient, context.result(0)}));
  };
  registry.add(std::move(relu), relu_kernels());

  graph::OperatorDefinition relu_grad;
  relu_grad.name = "relu_grad";
  relu_grad.operands = {{"gradient"}, {"output"}};
  relu_grad.results = {"dx"};
  relu_grad.in_place = {{0, 0}};
  relu_grad.cost = one_flop_each;
  relu_grad.infer = [](const OpView& op) -> std::vector<graph::ResultType> {
    expect_real(op, 0);
    expect_like(op, 1, 0);
    return {{op.operand(0).type, op.operand(0).shape}};
  };
  registry.add(std::move(relu_grad), relu_grad_kernels());
}

}  // namespace arenite::codelets
