#include "codelets/max_pool2d/max_pool2d.hpp"

namespace arenite::codelets {
namespace max_pool2d {
namespace {

/// A pooling's window with few enough taps for the codes.
Window window_of(const OpView& op) {
  const Window window = pool2d::window_of(op);
  pool2d::expect_codes_suffice(window.kernel, "kernel " + to_string(window.kernel));
  return window;
}

Results infer_forward(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Shape y = pool2d::output_shape(window_of(op), x);
  return {{DType::float32, y}, {DType::uint8, y}};
}

Results infer_grad(const OpView& op) {
  const Shape x = pool2d::input_shape(window_of(op), op);
  expect_value(op, 1, DType::uint8, op.operand(0).shape, "the shape of 'gradient'");
  return {{DType::float32, x}};
}

ValueId gradient(graph::GradientContext& ctx, ValueId g) {
  return ctx.builder().add1("max_pool2d_grad", {g, ctx.result(1)}, sized(ctx.forward()));
}

}  // namespace

Geometry Geometry::forward(const OpView& op) {
  return {Image(op.operand(0)), Image(op.result(0)), Image(op.result(1)), window_of(op)};
}

Geometry Geometry::grad(const OpView& op) {
  return {Image(op.result(0)), Image(op.operand(0)), Image(op.operand(1)), window_of(op)};
}

}  // namespace max_pool2d

void register_max_pool2d(Registry& registry) {
  using namespace max_pool2d;
  registry.add({.name = "max_pool2d",
                .operands = {{"x"}},
                .results = {"output", "code"},
                .attributes = pool2d::schema(),
                .infer = infer_forward,
                .gradient = gradient_of_first(gradient),
                .cost = pool2d::cost<Geometry::forward>,
                .of_share = rows_of_first<>},
               {direct_forward(), plain_forward()});
  registry.add({.name = "max_pool2d_grad",
                .operands = {{"gradient"}, {"code"}},
                .results = {"output"},
                .attributes = pool2d::schema({pair_schema("size")}),
                .infer = infer_grad,
                .cost = pool2d::cost<Geometry::grad>},
               {direct_grad(), plain_grad()});
}

}  // namespace arenite::codelets
