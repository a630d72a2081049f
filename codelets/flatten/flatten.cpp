// flatten(x [N, …]) -> [N, rest] and reshape(x, shape) : the same bytes under another shape. Both
// are views, without a kernel; `select` therefore gives x no halo.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {
namespace {

std::vector<std::optional<graph::ViewOf>> view_of_x(const OpView&) {
  return {graph::ViewOf{.operand = 0}};
}

/// The gradient of a view is the gradient itself, seen in the operand's shape.
ValueId reshape_gradient(graph::GradientContext& context, ValueId gradient) {
  return context.builder().add1("reshape", {gradient},
                                {{"shape", dims_of(context.forward().operand(0).shape)}});
}

Results infer_flatten(const OpView& op) {
  const graph::Value& x = op.operand(0);
  expect_axes(op, 0, "[N, …]");
  // Not elements / N: N may be 0.
  const Shape rest(x.shape.dims().subspan(1));
  return {{x.type, {x.shape[0], rest.elements()}}};
}

Results infer_reshape(const OpView& op) {
  const graph::Value& x = op.operand(0);
  std::vector<std::int64_t> dims = op.attributes().integers("shape");
  const std::string given = "shape=" + graph::to_string(*op.attributes().find("shape"));
  std::size_t unknown = dims.size(), unknowns = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) unknown = i, ++unknowns;
    if (dims[i] < -1) {
      fail({.found = given,
            .expected = "sizes of at least 0, and at most one -1 for the size that follows"});
    }
  }
  if (unknowns > 1) {
    fail({.found = given + " with " + std::to_string(unknowns) + " sizes of -1",
          .expected = "at most one"});
  }
  const std::int64_t elements = x.shape.elements();
  if (unknowns == 1) {
    dims[unknown] = 1;
    const std::int64_t known = Shape(dims).elements();
    if (known == 0 && elements == 0) {
      fail({.found = given + ", where another size is 0",
            .expected = "no -1 there, as any size has 0 elements"});
    }
    if (known == 0 || elements % known != 0) {
      fail({.found =
                given + " for " + std::to_string(elements) + " elements of " + to_string(x.shape),
            .expected = "known sizes whose product divides the number of elements"});
    }
    dims[unknown] = elements / known;
  }
  const Shape shape(dims);
  if (shape.elements() != elements) {
    fail({.found = given + " of " + std::to_string(shape.elements()) + " elements",
          .expected =
              std::to_string(elements) + " elements, as x has the shape " + to_string(x.shape)});
  }
  return {{x.type, shape}};
}

/// The same bytes under another shape, whatever they were seen as in between.
std::optional<Simpler> simplify(const OpView& op) {
  if (auto same = same_shape(op)) return same;
  for (const char* view : {"reshape", "flatten"}) {
    if (const graph::Op* inner = made_by(op, 0, view)) {
      return is_op("reshape", {inner->operands[0]}, {{"shape", dims_of(op.result(0).shape)}});
    }
  }
  return std::nullopt;
}

/// Where the first axis stays what it is, and does not follow from the others.
std::optional<graph::OfShare> reshape_of_share(const OpView& op, const graph::Share& share) {
  const Shape& y = op.result(0).shape;
  if (!share.has_rows(0) || y.rank() == 0 || y[0] != op.operand(0).shape[0]) return std::nullopt;
  return all_rows(op, with_rows(op, "shape", share));
}

}  // namespace

void register_flatten(Registry& registry) {
  graph::OperatorDefinition flatten{.name = "flatten",
                                    .operands = {{"x"}},
                                    .results = {"y"},
                                    .infer = infer_flatten,
                                    .views = view_of_x,
                                    .gradient = gradient_of_first(reshape_gradient),
                                    .cost = [](const OpView&) { return graph::Cost{}; },
                                    .simplify = simplify,
                                    .of_share = rows_of_first<>};

  graph::OperatorDefinition reshape = flatten;
  reshape.name = "reshape";
  reshape.attributes = {{"shape", graph::AttributeType::integers, {}}};
  reshape.infer = infer_reshape;
  reshape.of_share = reshape_of_share;

  registry.add(std::move(flatten), {});
  registry.add(std::move(reshape), {});
}

}  // namespace arenite::codelets
