// bias(x [..., C], bias [C]): adds a vector to every pixel or sample.
// bias_grad(gradient [..., C]) -> [C]: the sum over all axes but the last.
#include "codelets/last_axis.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<Kernel> bias_kernels();
std::vector<Kernel> bias_grad_kernels();

namespace {

Results infer_bias(const OpView& op) {
  const Shape& x = expect_last_axis(op, 0);
  expect_value(op, 1, DType::float32, {x.at(-1)}, "the last axis of x " + to_string(x));
  return {{DType::float32, x}};
}

void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  if (!gradient) return;
  if (context.wants(0)) context.set(0, gradient);
  if (context.wants(1)) context.set(1, context.builder().add1("bias_grad", {gradient}));
}

}  // namespace

void register_bias(Registry& registry) {
  registry.add({.name = "bias",
                .operands = {{"x"}, {"bias"}},
                .results = {"y"},
                .infer = infer_bias,
                .gradient = gradient,
                .in_place = {{0, 0}},
                .cost = cost_each<1>,
                .of_share = rows_of_first<2>},
               bias_kernels());
  registry.add({.name = "bias_grad",
                .operands = {{"gradient"}},
                .results = {"dbias"},
                .infer = [](const OpView& op) -> Results {
                  return {{DType::float32, {expect_last_axis(op, 0).at(-1)}}};
                },
                .cost = cost_each<1>},
               bias_grad_kernels());
}

}  // namespace arenite::codelets
