#include "codelets/conv2d/conv2d.hpp"

namespace arenite::codelets {
namespace conv2d {
namespace {

Results infer_forward(const OpView& op) {
  expect_forward_operands(op);
  const Shape &x = op.operand(0).shape, &weight = op.operand(1).shape;
  const Pair out = window_of(op, {weight[0], weight[1]}).output({x[1], x[2]});
  return {{DType::float32, Shape{x[0], out.h, out.w, weight[3]}}};
}

/// A gradient must have the shape that the forward op would give.
void check_gradient(const OpView& op, std::size_t i, std::int64_t samples, Pair size) {
  expect_shape(op, i, Shape{samples, size.h, size.w, op.operand(i).shape[3]},
               "as the convolution's output has");
}

Results infer_grad_input(const OpView& op) {
  expect_grad_input_operands(op, 1);
  const Shape &gradient = op.operand(0).shape, &weight = op.operand(1).shape;
  const Pair size = pair_of(op.attributes(), "size", 1);
  check_gradient(op, 0, gradient[0], window_of(op, {weight[0], weight[1]}).output(size));
  return {{DType::float32, Shape{gradient[0], size.h, size.w, weight[2]}}};
}

Results infer_grad_input_relu(const OpView& op) {
  Results dx = infer_grad_input(op);
  expect_value(op, 2, DType::float32, dx[0].shape, "the shape of the result");
  return dx;
}

Results infer_grad_weight(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Shape& gradient = expect_rank4(op, 1, DType::float32, "[N, OH, OW, K]");
  const Pair kernel = pair_of(op.attributes(), "kernel", 1);
  check_gradient(op, 1, x[0], window_of(op, kernel).output({x[1], x[2]}));
  return {{DType::float32, Shape{kernel.h, kernel.w, x[3], gradient[3]}}};
}

/// From the gradient of the convolution itself on.
void add_gradients(graph::GradientContext& ctx, ValueId g) {
  // Copied: appending ops moves what these refer to.
  const OpView op = ctx.forward();
  const Shape weight = op.operand(1).shape;
  const bool biased = op.has_operand(2);
  graph::Attributes attributes = op.attributes();
  if (ctx.wants(0))
    ctx.set(0, ctx.builder().add1("conv2d_grad_input", {g, ctx.operand(1)}, sized(op)));
  if (ctx.wants(1)) {
    attributes.set("kernel", std::vector{weight[0], weight[1]});
    ctx.set(1, ctx.builder().add1("conv2d_grad_weight", {ctx.operand(0), g}, attributes));
  }
  if (biased && ctx.wants(2)) ctx.set(2, ctx.builder().add1("bias_grad", {g}));
}

void gradient(graph::GradientContext& ctx) {
  if (const ValueId g = ctx.result_gradient(0)) add_gradients(ctx, g);
}

void relu_gradient(graph::GradientContext& ctx) {
  const ValueId g = ctx.result_gradient(0);
  const bool wanted =
      ctx.wants(0) || ctx.wants(1) || (ctx.forward().has_operand(2) && ctx.wants(2));
  if (!g || !wanted) return;
  add_gradients(ctx, ctx.builder().add1("relu_grad", {g, ctx.result(0)}));
}

template <auto geometry>
graph::Cost cost(const OpView& op) {
  return {.flops = geometry(op).flops(), .bytes = bytes_touched(op)};
}

}  // namespace

Geometry Geometry::forward(const OpView& op) {
  const Shape& weight = op.operand(1).shape;
  return {Image(op.operand(0)), Image(op.result(0)), window_of(op, {weight[0], weight[1]}),
          op.has_operand(2), op.op().name() == "conv2d_relu"};
}

Geometry Geometry::grad_input(const OpView& op) {
  const Shape& weight = op.operand(1).shape;
  Geometry g{Image(op.result(0)), Image(op.operand(0)), window_of(op, {weight[0], weight[1]})};
  if (op.has_operand(2)) g.output = Image(op.operand(2));
  return g;
}

Geometry Geometry::grad_weight(const OpView& op) {
  return {Image(op.operand(0)), Image(op.operand(1)),
          window_of(op, pair_of(op.attributes(), "kernel", 1))};
}

double Geometry::flops() const noexcept {
  return 2.0 * static_cast<double>(y.n * y.h * y.w * y.c) * static_cast<double>(taps() * x.c);
}

std::vector<std::int64_t> Geometry::tap_offsets(std::int64_t row) const {
  std::vector<std::int64_t> offsets;
  for (std::int64_t ky = 0; ky < window.kernel.h; ++ky) {
    for (std::int64_t kx = 0; kx < window.kernel.w; ++kx) {
      offsets.push_back((ky * window.dilation.h - window.padding.h) * row +
                        (kx * window.dilation.w - window.padding.w) * x.c);
    }
  }
  return offsets;
}

}  // namespace conv2d

void register_conv2d(Registry& registry) {
  using namespace conv2d;
  graph::OperatorDefinition forward{
      .name = "conv2d",
      .operands = {factor("x"), factor("weight"), {.name = "bias", .optional = true}},
      .results = {"output"},
      .attributes = schema(),
      .infer = infer_forward,
      .gradient = gradient,
      .cost = cost<Geometry::forward>,
      .of_share = rows_of_first<>};
  const auto kernels = [] {
    return std::vector{winograd_forward(), direct_forward(), xsmm_forward(), plain_forward()};
  };
  registry.add(forward, kernels());
  forward.name = "conv2d_relu";
  forward.gradient = relu_gradient;
  forward.does = graph::ChainOf{{"conv2d", "relu"}, attributes_of_first};
  registry.add(std::move(forward), kernels());

  graph::OperatorDefinition grad_input{.name = "conv2d_grad_input",
                                       .operands = {factor("gradient"), factor("weight")},
                                       .results = {"dx"},
                                       .attributes = schema({pair_schema("size")}),
                                       .infer = infer_grad_input,
                                       .cost = cost<Geometry::grad_input>};
  const auto grad_input_kernels = [] {
    return std::vector{winograd_grad_input(), xsmm_grad_input(), plain_grad_input()};
  };
  registry.add(grad_input, grad_input_kernels());
  grad_input.name = "conv2d_grad_input_relu";
  grad_input.operands.push_back({"output"});
  grad_input.infer = infer_grad_input_relu;
  grad_input.does = graph::ChainOf{{"conv2d_grad_input", "relu_grad"}, attributes_of_first};
  registry.add(std::move(grad_input), grad_input_kernels());

  registry.add({.name = "conv2d_grad_weight",
                .operands = {factor("x"), factor("gradient")},
                .results = {"output"},
                .attributes = schema({pair_schema("kernel")}),
                .infer = infer_grad_weight,
                .cost = cost<Geometry::grad_weight>},
               {direct_grad_weight(), xsmm_grad_weight(), plain_grad_weight()});
}

}  // namespace arenite::codelets
