// rms_norm(x [..., C], weight [C], eps=1e-5) -> y [..., C] = x · s · weight with s = 1 / sqrt(mean
// of x² along the last axis + eps) (B. Zhang and R. Sennrich, "Root mean square layer
// normalization", 2019), and its gradients, which compute s anew:
//   rms_norm_grad_input(gradient [..., C], x, weight, eps) -> dx [..., C]
//   rms_norm_grad_weight(gradient [..., C], x, eps) -> dweight [C]
#include "codelets/image.hpp"
#include "codelets/last_axis.hpp"
#include "codelets/registry.hpp"
#include "codelets/share.hpp"

#include <cmath>

namespace arenite::codelets {

std::vector<runtime::Kernel> rms_norm_kernels();
std::vector<runtime::Kernel> rms_norm_grad_input_kernels();
std::vector<runtime::Kernel> rms_norm_grad_weight_kernels();

namespace {

using graph::OpView;
using graph::ValueId;
using Results = std::vector<graph::ResultType>;

const graph::AttributeSchema eps_schema{"eps", graph::AttributeType::real, 1e-5};

void expect_eps(const OpView& op) {
  const double eps = op.real("eps");
  if (eps >= 0 && std::isfinite(eps)) return;
  fail({.found = "eps=" + graph::to_string(*op.attributes().find("eps")),
        .expected = "a finite number of at least 0"});
}

void expect_weight(const OpView& op, std::size_t i, const Shape& x) {
  expect_type(op, i, DType::float32);
  expect_shape(op, i, {x.at(-1)}, "the last axis of x " + to_string(x));
}

Results infer_norm(const OpView& op) {
  const Shape& x = expect_last_axis(op, 0);
  expect_weight(op, 1, x);
  expect_eps(op);
  return {{DType::float32, x}};
}

Results infer_grad_input(const OpView& op) {
  const Shape& gradient = expect_last_axis(op, 0);
  expect_like(op, 1, 0);
  expect_weight(op, 2, gradient);
  expect_eps(op);
  return {{DType::float32, gradient}};
}

Results infer_grad_weight(const OpView& op) {
  const Shape& gradient = expect_last_axis(op, 0);
  expect_like(op, 1, 0);
  expect_eps(op);
  return {{DType::float32, {gradient.at(-1)}}};
}

void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  if (!gradient) return;
  const ValueId x = context.operand(0), weight = context.operand(1);
  const graph::Attributes eps{{"eps", context.forward().real("eps")}};
  // First what only reads the gradient and x: then dx may take the place of one of them.
  if (context.wants(1))
    context.set(1, context.builder().add1("rms_norm_grad_weight", {gradient, x}, eps));
  if (context.wants(0))
    context.set(0, context.builder().add1("rms_norm_grad_input", {gradient, x, weight}, eps));
}

template <int flops_each>
graph::Cost cost(const OpView& op) {
  return {.flops = flops_each * static_cast<double>(op.operand(0).shape.elements()),
          .bytes = bytes_touched(op)};
}

}  // namespace

void register_rms_norm(Registry& registry) {
  graph::OperatorDefinition norm;
  norm.name = "rms_norm";
  norm.operands = {{"x"}, {"weight"}};
  norm.results = {"y"};
  norm.attributes = {eps_schema};
  norm.in_place = {{0, 0}};
  norm.infer = infer_norm;
  norm.of_share = rows_of_first<2>;
  norm.gradient = gradient;
  norm.cost = cost<4>;
  registry.add(std::move(norm), rms_norm_kernels());

  graph::OperatorDefinition grad_input;
  grad_input.name = "rms_norm_grad_input";
  grad_input.operands = {{"gradient"}, {"x"}, {"weight"}};
  grad_input.results = {"dx"};
  grad_input.attributes = {eps_schema};
  grad_input.in_place = {{0, 0}, {0, 1}};
  grad_input.infer = infer_grad_input;
  grad_input.cost = cost<10>;
  registry.add(std::move(grad_input), rms_norm_grad_input_kernels());

  graph::OperatorDefinition grad_weight;
  grad_weight.name = "rms_norm_grad_weight";
  grad_weight.operands = {{"gradient"}, {"x"}};
  grad_weight.results = {"dweight"};
  grad_weight.attributes = {eps_schema};
  grad_weight.infer = infer_grad_weight;
  grad_weight.cost = cost<5>;
  registry.add(std::move(grad_weight), rms_norm_grad_weight_kernels());
}

}  // namespace arenite::codelets
