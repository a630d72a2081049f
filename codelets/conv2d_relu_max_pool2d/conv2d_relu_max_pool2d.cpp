#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

#include "codelets/conv2d/conv2d.hpp"

namespace arenite::codelets {
namespace conv2d_relu_max_pool2d {
namespace {

using conv2d::window_of;

Pair pool_of(const OpView& op) {
  const Pair pool = pair_of(op.attributes(), "pool", 1);
  pool2d::expect_codes_suffice(pool, "pooling windows of " + to_string(pool));
  return pool;
}

/// Rows and columns of the pooled output; throws Error when there is none.
Pair pooled(const OpView& op, Pair image, Pair kernel) {
  const Pair convolved = window_of(op, kernel).output(image), pool = pool_of(op);
  if (pool.h > convolved.h || pool.w > convolved.w) {
    fail({.found = "pooling windows of " + to_string(pool) + " over a convolution's output of " +
                   to_string(convolved),
          .expected = "windows that fit"});
  }
  return {convolved.h / pool.h, convolved.w / pool.w};
}

Results infer_forward(const OpView& op) {
  conv2d::expect_forward_operands(op);
  const Shape &x = op.operand(0).shape, &weight = op.operand(1).shape;
  const Pair out = pooled(op, {x[1], x[2]}, {weight[0], weight[1]});
  const Shape y{x[0], out.h, out.w, weight[3]};
  return {{DType::float32, y}, {DType::uint8, y}};
}

/// Operands i and i+1, a gradient and its codes, must have the shape that the forward op gives.
void check_gradient(const OpView& op, std::size_t i, std::int64_t samples, Pair image,
                    Pair kernel) {
  const Shape& gradient = expect_rank4(op, i, DType::float32, "[N, OH, OW, K]");
  const Pair out = pooled(op, image, kernel);
  expect_shape(op, i, Shape{samples, out.h, out.w, gradient[3]}, "as the pooled output has");
  expect_value(op, i + 1, DType::uint8, gradient, "the shape of 'gradient'");
}

Results infer_grad_input(const OpView& op) {
  conv2d::expect_grad_input_operands(op, 2);
  const Shape &gradient = op.operand(0).shape, &weight = op.operand(2).shape;
  const Pair size = pair_of(op.attributes(), "size", 1);
  check_gradient(op, 0, gradient[0], size, {weight[0], weight[1]});
  return {{DType::float32, Shape{gradient[0], size.h, size.w, weight[2]}}};
}

Results infer_grad_input_relu(const OpView& op) {
  Results dx = infer_grad_input(op);
  expect_value(op, 3, DType::float32, dx[0].shape, "the shape of the result");
  return dx;
}

Results infer_grad_weight(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Pair kernel = pair_of(op.attributes(), "kernel", 1);
  check_gradient(op, 1, x[0], {x[1], x[2]}, kernel);
  const std::int64_t outputs = op.operand(1).shape[3];
  return {{DType::float32, Shape{kernel.h, kernel.w, x[3], outputs}},
          {DType::float32, Shape{outputs}}};
}

void gradient(graph::GradientContext& ctx) {
  const ValueId g = ctx.result_gradient(0);
  if (!g) return;
  // Copied: appending ops moves what these refer to.
  const OpView op = ctx.forward();
  const Shape weight = op.operand(1).shape;
  const bool wants_bias = op.has_operand(2) && ctx.wants(2);
  graph::Attributes shaped = op.attributes();
  if (ctx.wants(0)) {
    ctx.set(0, ctx.builder().add1("conv2d_relu_max_pool2d_grad_input",
                                  {g, ctx.result(1), ctx.operand(1)}, sized(op)));
  }
  if (!ctx.wants(1) && !wants_bias) return;
  shaped.set("kernel", std::vector{weight[0], weight[1]});
  const auto results = ctx.builder().add("conv2d_relu_max_pool2d_grad_weight",
                                         {ctx.operand(0), g, ctx.result(1)}, shaped);
  if (ctx.wants(1)) ctx.set(1, results.at(0));
  if (wants_bias) ctx.set(2, results.at(1));
}

/// The chain this op stands for: conv2d, relu, max_pool2d with windows side by side.
std::optional<graph::Attributes> fuse(const std::vector<OpView>& chain) {
  const graph::Attributes &conv = chain.at(0).attributes(), &pool = chain.at(2).attributes();
  using List = std::vector<std::int64_t>;
  const List &kernel = pool.integers("kernel"), &stride = pool.integers("stride");
  const bool side_by_side = stride.empty() || stride == kernel;
  if (!side_by_side || pool.integers("padding") != List{0, 0}) return std::nullopt;
  return graph::Attributes{{"stride", conv.integers("stride")},
                           {"padding", conv.integers("padding")},
                           {"dilation", conv.integers("dilation")},
                           {"pool", kernel}};
}

const graph::AttributeSchema pool_schema{"pool", graph::AttributeType::integers,
                                         std::vector<std::int64_t>{2, 2}};

graph::Cost forward_cost(const OpView& op) {
  return {.flops = Geometry::forward(op).convolution_flops(), .bytes = bytes_touched(op)};
}

/// One tap of a window has a gradient.
template <auto geometry>
graph::Cost grad_cost(const OpView& op) {
  const Geometry g = geometry(op);
  return {.flops = g.convolution_flops() / static_cast<double>(g.pool.h * g.pool.w),
          .bytes = bytes_touched(op)};
}

}  // namespace

Geometry Geometry::forward(const OpView& op) {
  const Shape& weight = op.operand(1).shape;
  return {Image(op.operand(0)), Image(op.result(0)),
          Image(op.result(1)),  window_of(op, {weight[0], weight[1]}),
          pool_of(op),          op.has_operand(2)};
}

Geometry Geometry::grad_input(const OpView& op) {
  const Shape& weight = op.operand(2).shape;
  Geometry g{Image(op.result(0)), Image(op.operand(0)), Image(op.operand(1)),
             window_of(op, {weight[0], weight[1]}), pool_of(op)};
  if (op.has_operand(3)) g.output = Image(op.operand(3));
  return g;
}

Geometry Geometry::grad_weight(const OpView& op) {
  return {Image(op.operand(0)), Image(op.operand(1)), Image(op.operand(2)),
          window_of(op, pair_of(op.attributes(), "kernel", 1)), pool_of(op)};
}

double Geometry::convolution_flops() const noexcept {
  const Pair size = convolved();
  return 2.0 * static_cast<double>(y.n * size.h * size.w * y.c) * static_cast<double>(taps() * x.c);
}

}  // namespace conv2d_relu_max_pool2d

void register_conv2d_relu_max_pool2d(Registry& registry) {
  using namespace conv2d_relu_max_pool2d;
  registry.add({.name = "conv2d_relu_max_pool2d",
                .operands = {factor("x"), factor("weight"), {.name = "bias", .optional = true}},
                .results = {"output", "code"},
                .attributes = conv2d::schema({pool_schema}),
                .infer = infer_forward,
                .gradient = gradient,
                .cost = forward_cost,
                .does = graph::ChainOf{{"conv2d", "relu", "max_pool2d"}, fuse},
                .of_share = rows_of_first<>},
               {winograd_forward(), direct_forward(), xsmm_forward(), plain_forward()});
  graph::OperatorDefinition grad_input{
      .name = "conv2d_relu_max_pool2d_grad_input",
      .operands = {factor("gradient"), {"code"}, factor("weight")},
      .results = {"dx"},
      .attributes = conv2d::schema({pool_schema, pair_schema("size")}),
      .infer = infer_grad_input,
      .cost = grad_cost<Geometry::grad_input>};
  const auto grad_input_kernels = [] {
    return std::vector{sparse_grad_input(), xsmm_grad_input(), plain_grad_input()};
  };
  registry.add(grad_input, grad_input_kernels());
  grad_input.does = graph::ChainOf{{grad_input.name, "relu_grad"}, conv2d::attributes_of_first};
  grad_input.name += "_relu";
  grad_input.operands.push_back({"output"});
  grad_input.infer = infer_grad_input_relu;
  registry.add(std::move(grad_input), grad_input_kernels());
  registry.add(
      {.name = "conv2d_relu_max_pool2d_grad_weight",
       .operands = {factor("x"), factor("gradient"), {"code"}},
       .results = {"dweight", "dbias"},
       .attributes = conv2d::schema({pool_schema, pair_schema("kernel")}),
       .infer = infer_grad_weight,
       .cost = grad_cost<Geometry::grad_weight>},
      {sparse_patch_grad_weight(), sparse_grad_weight(), xsmm_grad_weight(), plain_grad_weight()});
}

}  // namespace arenite::codelets
