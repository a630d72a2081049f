// rms_norm(x [..., C], weight [C], eps=1e-5) -> y [..., C] = x · s · weight with s = 1 / sqrt(mean
// of x² along the last axis + eps) (B. Zhang and R. Sennrich, "Root mean square layer
// normalization", 2019), and its gradients, which compute s anew:
//   rms_norm_grad_input(gradient [..., C], x, weight, eps) -> dx [..., C]
//   rms_norm_grad_weight(gradient [..., C], x, eps) -> dweight [C]
#include "codelets/last_axis.hpp"
#include "codelets/registry.hpp"

#include <cmath>

namespace arenite::codelets {

std::vector<Kernel> rms_norm_kernels();
std::vector<Kernel> rms_norm_grad_input_kernels();
std::vector<Kernel> rms_norm_grad_weight_kernels();

namespace {

const graph::AttributeSchema eps_schema{"eps", graph::AttributeType::real, 1e-5};

void expect_eps(const OpView& op) {
  const double eps = op.real("eps");
  if (eps >= 0 && std::isfinite(eps)) return;
  fail({.found = "eps=" + graph::to_string(*op.attributes().find("eps")),
        .expected = "a finite number of at least 0"});
}

void expect_weight(const OpView& op, std::size_t i, const Shape& x) {
  expect_value(op, i, DType::float32, {x.at(-1)}, "the last axis of x " + to_string(x));
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

}  // namespace

void register_rms_norm(Registry& registry) {
  registry.add({.name = "rms_norm",
                .operands = {{"x"}, {"weight"}},
                .results = {"y"},
                .attributes = {eps_schema},
                .infer = infer_norm,
                .gradient = gradient,
                .in_place = {{0, 0}},
                .cost = cost_each<4>,
                .of_share = rows_of_first<2>},
               rms_norm_kernels());
  registry.add({.name = "rms_norm_grad_input",
                .operands = {{"gradient"}, {"x"}, {"weight"}},
                .results = {"dx"},
                .attributes = {eps_schema},
                .infer = infer_grad_input,
                .in_place = {{0, 0}, {0, 1}},
                .cost = cost_each<10>},
               rms_norm_grad_input_kernels());
  registry.add({.name = "rms_norm_grad_weight",
                .operands = {{"gradient"}, {"x"}},
                .results = {"dweight"},
                .attributes = {eps_schema},
                .infer = infer_grad_weight,
                .cost = cost_each<5>},
               rms_norm_grad_weight_kernels());
}

}  // namespace arenite::codelets
