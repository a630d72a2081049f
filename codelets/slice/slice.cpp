// slice(x [R, …], begin, end) -> [end − begin, …] : rows of the first axis, a view without a
// kernel. Its gradient is slice_grad(gradient [n, …], begin, rows) -> dx [rows, …]: zeros outside
// the slice.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> slice_grad_kernels();

namespace {

Results infer_slice(const OpView& op) {
  const graph::Value& x = op.operand(0);
  expect_axes(op, 0, "[R, …]");
  const std::int64_t begin = op.integer("begin"), end = op.integer("end");
  if (begin < 0 || end < begin || end > x.shape[0]) {
    fail({.found = "rows " + std::to_string(begin) + " to " + std::to_string(end),
          .expected = "0 ≤ begin ≤ end ≤ " + std::to_string(x.shape[0]) + ", as x has the shape " +
                      to_string(x.shape)});
  }
  return {{x.type, x.shape.with(0, end - begin)}};
}

std::vector<std::optional<graph::ViewOf>> view_of_rows(const OpView& op) {
  const graph::Value& x = op.operand(0);
  // Behind the rows ahead of it; a row of images is an image with its halo.
  const Shape ahead = x.shape.with(0, op.integer("begin"));
  return {graph::ViewOf{.operand = 0, .offset = graph::byte_size(x.type, ahead, x.layout)}};
}

std::optional<Simpler> simplify_slice(const OpView& op) {
  if (auto all = same_shape(op)) return all;
  const graph::Op* inner = made_by(op, 0, "slice");
  if (!inner) return std::nullopt;
  const std::int64_t first = inner->attributes.integer("begin");
  return is_op("slice", {inner->operands[0]},
               {{"begin", first + op.integer("begin")}, {"end", first + op.integer("end")}});
}

ValueId slice_gradient(graph::GradientContext& context, ValueId gradient) {
  const OpView forward = context.forward();
  const std::int64_t begin = forward.integer("begin"), rows = forward.operand(0).shape[0];
  return context.builder().add1("slice_grad", {gradient}, {{"begin", begin}, {"rows", rows}});
}

Results infer_slice_grad(const OpView& op) {
  expect_type(op, 0, DType::float32);
  const Shape& gradient = op.operand(0).shape;
  expect_axes(op, 0, "[R, …]");
  const std::int64_t begin = op.integer("begin"), rows = op.integer("rows");
  if (begin < 0 || rows < gradient[0] || begin > rows - gradient[0]) {
    fail({.found = std::to_string(gradient[0]) + " rows from begin=" + std::to_string(begin) +
                   " in rows=" + std::to_string(rows),
          .expected = "0 ≤ begin ≤ rows − " + std::to_string(gradient[0])});
  }
  return {{DType::float32, gradient.with(0, rows)}};
}

}  // namespace

void register_slice(Registry& registry) {
  registry.add({.name = "slice",
                .operands = {{"x"}},
                .results = {"y"},
                .attributes = {{"begin", graph::AttributeType::integer, {}},
                               {"end", graph::AttributeType::integer, {}}},
                .infer = infer_slice,
                .views = view_of_rows,
                .gradient = gradient_of_first(slice_gradient),
                .cost = [](const OpView&) { return graph::Cost{}; },
                .simplify = simplify_slice},
               {});
  registry.add({.name = "slice_grad",
                .operands = {{"gradient"}},
                .results = {"dx"},
                .attributes = {{"begin", graph::AttributeType::integer, {}},
                               {"rows", graph::AttributeType::integer, {}}},
                .infer = infer_slice_grad,
                .simplify = same_shape},
               slice_grad_kernels());
}

}  // namespace arenite::codelets
