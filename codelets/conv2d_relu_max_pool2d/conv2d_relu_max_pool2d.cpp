#include "codelets/conv2d_relu_max_pool2d/conv2d_relu_max_pool2d.hpp"

namespace arenite::codelets {
namespace conv2d_relu_max_pool2d {
namespace {

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

/// One tap of a window has a gradient.
template <auto geometry>
graph::Cost grad_cost(const OpView& op) {
  const Geometry g = geometry(op);
  return {.flops = g.flops() / static_cast<double>(g.pool.h * g.pool.w),
          .bytes = bytes_touched(op)};
}

}  // namespace

Geometry Geometry::forward(const OpView& op) {
  return {conv2d::Geometry::forward(op), Image(op.result(1))};
}

Geometry Geometry::grad_input(const OpView& op) {
  return {conv2d::Geometry::grad_input(op), Image(op.operand(1))};
}

Geometry Geometry::grad_weight(const OpView& op) {
  return {conv2d::Geometry::grad_weight(op), Image(op.operand(2))};
}

}  // namespace conv2d_relu_max_pool2d

void register_conv2d_relu_max_pool2d(Registry& registry) {
  using namespace conv2d_relu_max_pool2d;
  registry.add({.name = "conv2d_relu_max_pool2d",
                .operands = {factor("x"), factor("weight"), {.name = "bias", .optional = true}},
                .results = {"output", "code"},
                .attributes = conv2d::schema({pool_schema}),
                .infer = conv2d::infer_forward,
                .gradient = gradient,
                .cost = conv2d::cost<Geometry::forward>,
                .does = graph::ChainOf{{"conv2d", "relu", "max_pool2d"}, fuse},
                .of_share = rows_of_first<>},
               {winograd_forward(), direct_forward(), xsmm_forward(), plain_forward()});
  graph::OperatorDefinition grad_input{
      .name = "conv2d_relu_max_pool2d_grad_input",
      .operands = {factor("gradient"), {"code"}, factor("weight")},
      .results = {"dx"},
      .attributes = conv2d::schema({pool_schema, pair_schema("size")}),
      .infer = conv2d::infer_grad_input,
      .cost = grad_cost<Geometry::grad_input>};
  const auto grad_input_kernels = [] {
    return std::vector{sparse_grad_input(), xsmm_grad_input(), plain_grad_input()};
  };
  registry.add(grad_input, grad_input_kernels());
  grad_input.does = graph::ChainOf{{grad_input.name, "relu_grad"}, conv2d::attributes_of_first};
  grad_input.name += "_relu";
  grad_input.operands.push_back({"output"});
  registry.add(std::move(grad_input), grad_input_kernels());
  registry.add(
      {.name = "conv2d_relu_max_pool2d_grad_weight",
       .operands = {factor("x"), factor("gradient"), {"code"}},
       .results = {"dweight", "dbias"},
       .attributes = conv2d::schema({pool_schema, pair_schema("kernel")}),
       .infer = conv2d::infer_grad_weight,
       .cost = grad_cost<Geometry::grad_weight>},
      {sparse_patch_grad_weight(), sparse_grad_weight(), xsmm_grad_weight(), plain_grad_weight()});
}

}  // namespace arenite::codelets
