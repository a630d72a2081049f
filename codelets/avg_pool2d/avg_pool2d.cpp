#include "codelets/avg_pool2d/avg_pool2d.hpp"

namespace arenite::codelets {
namespace avg_pool2d {
namespace {

bool counts_padding(const OpView& op) {
  const std::int64_t given = op.integer("count_padding");
  if (given != 0 && given != 1) {
    fail({.found = "count_padding=" + std::to_string(given),
          .expected = "1 (divide by the window's area) or 0 (by its pixels inside the image)"});
  }
  return given == 1;
}

Results infer_forward(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  static_cast<void>(counts_padding(op));
  return {{DType::float32, pool2d::output_shape(pool2d::window_of(op), x)}};
}

Results infer_grad(const OpView& op) {
  static_cast<void>(counts_padding(op));
  return {{DType::float32, pool2d::input_shape(pool2d::window_of(op), op)}};
}

ValueId gradient(graph::GradientContext& ctx, ValueId g) {
  return ctx.builder().add1("avg_pool2d_grad", {g}, sized(ctx.forward()));
}

const graph::AttributeSchema count_padding_schema{"count_padding", graph::AttributeType::integer,
                                                  std::int64_t{1}};

}  // namespace

Geometry Geometry::forward(const OpView& op) {
  return {Image(op.operand(0)), Image(op.result(0)), pool2d::window_of(op), counts_padding(op)};
}

Geometry Geometry::grad(const OpView& op) {
  return {Image(op.result(0)), Image(op.operand(0)), pool2d::window_of(op), counts_padding(op)};
}

}  // namespace avg_pool2d

void register_avg_pool2d(Registry& registry) {
  using namespace avg_pool2d;
  registry.add({.name = "avg_pool2d",
                .operands = {{"x"}},
                .results = {"output"},
                .attributes = pool2d::schema({count_padding_schema}),
                .infer = infer_forward,
                .gradient = gradient_of_first(gradient),
                .cost = pool2d::cost<Geometry::forward>,
                .of_share = rows_of_first<>},
               {plain_forward()});
  registry.add({.name = "avg_pool2d_grad",
                .operands = {{"gradient"}},
                .results = {"output"},
                .attributes = pool2d::schema({pair_schema("size"), count_padding_schema}),
                .infer = infer_grad,
                .cost = pool2d::cost<Geometry::grad>},
               {plain_grad()});
}

}  // namespace arenite::codelets
