#include "codelets/conv2d/conv2d.hpp"

#include "codelets/pool2d.hpp"

namespace arenite::codelets {
namespace conv2d {
namespace {

/// All but the kernel's size, which comes from another place in each op.
Window window_of(const OpView& op, Pair kernel) {
  const graph::Attributes& attributes = op.attributes();
  return {.kernel = kernel,
          .stride = pair_of(attributes, "stride", 1),
          .padding = pair_of(attributes, "padding", 0),
          .dilation = pair_of(attributes, "dilation", 1)};
}

bool pools(const OpView& op) { return op.attributes().has("pool"); }

Pair pool_of(const OpView& op) {
  if (!pools(op)) return {1, 1};
  const Pair pool = pair_of(op.attributes(), "pool", 1);
  pool2d::expect_codes_suffice(pool, "pooling windows of " + to_string(pool));
  return pool;
}

/// Rows and columns of y; throws Error when there is none.
Pair output_of(const OpView& op, Pair image, Pair kernel) {
  const Pair convolved = window_of(op, kernel).output(image), pool = pool_of(op);
  if (pool.h > convolved.h || pool.w > convolved.w) {
    fail({.found = "pooling windows of " + to_string(pool) + " over a convolution's output of " +
                   to_string(convolved),
          .expected = "windows that fit"});
  }
  return {convolved.h / pool.h, convolved.w / pool.w};
}

/// The weight's place among an input gradient's operands; a ReLU's output may follow.
std::size_t weight_of(const OpView& op) { return pools(op) ? 2 : 1; }

/// Operand i, a gradient, must have the shape that the forward op would give, and so must its
/// codes.
void check_gradient(const OpView& op, std::size_t i, std::int64_t samples, Pair image,
                    Pair kernel) {
  const Shape& gradient = op.operand(i).shape;
  const Pair size = output_of(op, image, kernel);
  expect_shape(op, i, Shape{samples, size.h, size.w, gradient[3]},
               pools(op) ? "as the pooled output has" : "as the convolution's output has");
  if (pools(op)) expect_value(op, i + 1, DType::uint8, gradient, "the shape of 'gradient'");
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

}  // namespace

Results infer_forward(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Shape& weight = expect_rank4(op, 1, DType::float32, "[KH, KW, C, K]");
  if (weight[2] != x[3]) {
    fail({.found = operand_text(op, 1) + " of shape " + to_string(weight) + " for an input of " +
                   std::to_string(x[3]) + " channels",
          .expected = "[KH, KW, " + std::to_string(x[3]) + ", K]"});
  }
  if (op.has_operand(2))
    expect_value(op, 2, DType::float32, Shape{weight[3]}, "one for each output channel");
  const Pair out = output_of(op, {x[1], x[2]}, {weight[0], weight[1]});
  const Shape y{x[0], out.h, out.w, weight[3]};
  Results results{{DType::float32, y}};
  if (pools(op)) results.push_back({DType::uint8, y});
  return results;
}

Results infer_grad_input(const OpView& op) {
  const std::size_t weight_at = weight_of(op), output_at = weight_at + 1;
  const Shape& gradient = expect_rank4(op, 0, DType::float32, "[N, OH, OW, K]");
  const Shape& weight = expect_rank4(op, weight_at, DType::float32, "[KH, KW, C, K]");
  if (weight[3] != gradient[3]) {
    fail({.found = operand_text(op, weight_at) + " of shape " + to_string(weight) +
                   " for a gradient of " + std::to_string(gradient[3]) + " channels",
          .expected = "[KH, KW, C, " + std::to_string(gradient[3]) + "]"});
  }
  const Pair size = pair_of(op.attributes(), "size", 1);
  check_gradient(op, 0, gradient[0], size, {weight[0], weight[1]});
  const Shape dx{gradient[0], size.h, size.w, weight[2]};
  if (op.has_operand(output_at))
    expect_value(op, output_at, DType::float32, dx, "the shape of the result");
  return {{DType::float32, dx}};
}

Results infer_grad_weight(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Shape& gradient = expect_rank4(op, 1, DType::float32, "[N, OH, OW, K]");
  const Pair kernel = pair_of(op.attributes(), "kernel", 1);
  check_gradient(op, 1, x[0], {x[1], x[2]}, kernel);
  Results results{{DType::float32, Shape{kernel.h, kernel.w, x[3], gradient[3]}}};
  if (pools(op)) results.push_back({DType::float32, Shape{gradient[3]}});
  return results;
}

Geometry Geometry::forward(const OpView& op) {
  const Shape& weight = op.operand(1).shape;
  return {.x = Image(op.operand(0)),
          .y = Image(op.result(0)),
          .window = window_of(op, {weight[0], weight[1]}),
          .pool = pool_of(op),
          .biased = op.has_operand(2),
          .relu = op.op().name() != "conv2d"};
}

Geometry Geometry::grad_input(const OpView& op) {
  const std::size_t weight_at = weight_of(op), output_at = weight_at + 1;
  const Shape& weight = op.operand(weight_at).shape;
  Geometry g{.x = Image(op.result(0)),
             .y = Image(op.operand(0)),
             .window = window_of(op, {weight[0], weight[1]}),
             .pool = pool_of(op)};
  if (op.has_operand(output_at)) g.output = Image(op.operand(output_at));
  return g;
}

Geometry Geometry::grad_weight(const OpView& op) {
  return {.x = Image(op.operand(0)),
          .y = Image(op.operand(1)),
          .window = window_of(op, pair_of(op.attributes(), "kernel", 1)),
          .pool = pool_of(op)};
}

double Geometry::flops() const noexcept {
  const Pair size = convolved();
  return 2.0 * static_cast<double>(y.n * size.h * size.w * y.c) * static_cast<double>(taps() * x.c);
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
