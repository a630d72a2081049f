// bias(x [..., C], bias [C]): adds a vector to every pixel or sample.
// bias_grad(gradient [..., C]) -> [C]: the sum over all axes but the last.
#include "codelets/image.hpp"
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/share.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> bias_kernels();
std::vector<runtime::Kernel> bias_grad_kernels();

namespace {

using graph::OpView;
using graph::ValueId;

std::int64_t channels_of(const OpView& op) {
  const Shape& shape = op.operand(0).shape;
  expect_type(op, 0, DType::float32);
  if (shape.rank() == 0) {
    fail({.found = operand_text(op, 0) + " of shape []", .expected = "rank 1 or more, [..., C]"});
  }
  return shape.at(-1);
}

graph::Cost one_flop_each(const OpView& op) {
  return {.flops = static_cast<double>(op.operand(0).shape.elements()), .bytes = bytes_touched(op)};
}

}  // namespace

void register_bias(Registry& registry) {
  graph::OperatorDefinition bias;
  bias.name = "bias";
  bias.operands = {{"x"}, {"bias"}};
  bias.results = {"y"};
  bias.in_place = {{0, 0}};
  bias.of_share = rows_of_first<2>;
  bias.cost = one_flop_each;
  bias.infer = [](const OpView& op) -> std::vector<graph::ResultType> {
    const Shape expected{channels_of(op)};
    expect_type(op, 1, DType::float32);
    expect_shape(op, 1, expected, "the last axis of x " + to_string(op.operand(0).shape));
    return {{DType::float32, op.operand(0).shape}};
  };
  bias.gradient = [](graph::GradientContext& context) {
    const ValueId gradient = context.result_gradient(0);
    if (!gradient) return;
    if (context.wants(0)) context.set(0, gradient);
    if (context.wants(1)) context.set(1, context.builder().add1("bias_grad", {gradient}));
  };
  registry.add(std::move(bias), bias_kernels());

  graph::OperatorDefinition bias_grad;
  bias_grad.name = "bias_grad";
  bias_grad.operands = {{"gradient"}};
  bias_grad.results = {"dbias"};
  bias_grad.cost = one_flop_each;
  bias_grad.sums_leading_axes = true;
  bias_grad.infer = [](const OpView& op) -> std::vector<graph::ResultType> {
    return {{DType::float32, {channels_of(op)}}};
  };
  registry.add(std::move(bias_grad), bias_grad_kernels());
}

}  // namespace arenite::codelets
