#include "codelets/max_pool2d/max_pool2d.hpp"

namespace arenite::codelets {
namespace max_pool2d {
namespace {

using graph::OpView;

Window window_of(const OpView& op) {
  const graph::Attributes& attributes = op.attributes();
  Window window{.kernel = pair_of(attributes, "kernel", 1),
                .padding = pair_of(attributes, "padding", 0)};
  window.stride =
      attributes.integers("stride").empty() ? window.kernel : pair_of(attributes, "stride", 1);
  if (window.kernel.h > max_area || window.kernel.w > max_area || window.area() > max_area) {
    fail({.found = "kernel " + to_string(window.kernel),
          .expected = "at most " + std::to_string(max_area) + " taps",
          .hint = "pool in two steps"});
  }
  if (window.padding.h >= window.kernel.h || window.padding.w >= window.kernel.w) {
    fail({.found =
              "padding " + to_string(window.padding) + " with kernel " + to_string(window.kernel),
          .expected = "padding smaller than the kernel, so that no window is all padding"});
  }
  return window;
}

std::vector<graph::ResultType> infer_forward(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Pair out = window_of(op).output({x[1], x[2]});
  const Shape y{x[0], out.h, out.w, x[3]};
  return {{DType::float32, y}, {DType::uint8, y}};
}

std::vector<graph::ResultType> infer_grad(const OpView& op) {
  const Shape& gradient = expect_rank4(op, 0, DType::float32, "[N, OH, OW, C]");
  expect_type(op, 1, DType::uint8);
  const Pair size = pair_of(op.attributes(), "size", 1);
  const Pair out = window_of(op).output(size);
  expect_shape(op, 0, Shape{gradient[0], out.h, out.w, gradient[3]}, "as the pooling's output has");
  expect_shape(op, 1, gradient, "the shape of 'gradient'");
  return {{DType::float32, Shape{gradient[0], size.h, size.w, gradient[3]}}};
}

void gradient(graph::GradientContext& ctx) {
  const graph::ValueId g = ctx.result_gradient(0);
  if (!g || !ctx.wants(0)) return;
  const OpView op = ctx.forward();
  graph::Attributes attributes = op.attributes();
  attributes.set("size", std::vector{op.operand(0).shape[1], op.operand(0).shape[2]});
  ctx.set(0, ctx.builder().add1("max_pool2d_grad", {g, ctx.result(1)}, attributes));
}

std::vector<graph::AttributeSchema> schema(std::optional<std::string> extra = std::nullopt) {
  using Kind = graph::AttributeType;
  using List = std::vector<std::int64_t>;
  std::vector<graph::AttributeSchema> all{{"kernel", Kind::integers, List{2, 2}},
                                          {"stride", Kind::integers, List{}},
                                          {"padding", Kind::integers, List{0, 0}}};
  if (extra) all.push_back({*extra, Kind::integers, std::nullopt});
  return all;
}

/// One comparison, or one addition, a tap.
template <auto geometry>
graph::Cost cost(const OpView& op) {
  const Geometry g = geometry(op);
  return {.flops = static_cast<double>(g.y.n * g.y.h * g.y.w * g.y.c * g.window.area()),
          .bytes = bytes_touched(op)};
}

}  // namespace

Geometry Geometry::forward(const OpView& op) {
  return {Image(op.operand(0)), Image(op.result(0)), Image(op.result(1)), window_of(op)};
}

Geometry Geometry::grad(const OpView& op) {
  return {Image(op.result(0)), Image(op.operand(0)), Image(op.operand(1)), window_of(op)};
}

void zero_uncovered(float* dx, const Geometry& g) noexcept {
  for (std::int64_t i = 0; i < g.x.n; ++i) {
    for (std::int64_t y = 0; y < g.x.h; ++y) {
      const std::int64_t from = y < 2 * g.y.h ? 2 * g.y.w : 0;
      std::fill(dx + g.x.at(i, y, from), dx + g.x.at(i, y, g.x.w), 0.0f);
    }
  }
}

}  // namespace max_pool2d

void register_max_pool2d(Registry& registry) {
  using namespace max_pool2d;
  registry.add({.name = "max_pool2d",
                .operands = {{"x"}},
                .results = {"output", "code"},
                .attributes = schema(),
                .infer = infer_forward,
                .gradient = gradient,
                .cost = cost<Geometry::forward>},
               {direct_forward(), plain_forward()});
  registry.add({.name = "max_pool2d_grad",
                .operands = {{"gradient"}, {"code"}},
                .results = {"output"},
                .attributes = schema("size"),
                .infer = infer_grad,
                .cost = cost<Geometry::grad>},
               {direct_grad(), plain_grad()});
}

}  // namespace arenite::codelets
