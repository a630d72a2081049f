// complex_mul(a [..., 2], b [..., 2], conjugate=0) -> y: products of complex numbers (real part,
// imaginary part), of float32 or float64. Any axis of b but the last may be 1 and is then repeated
// along a's. With conjugate=1, a is multiplied by the complex conjugates of b.
//
// The gradient of a is complex_mul(gradient, b, conjugate = 1 − conjugate), that of b
//   complex_mul_grad_right(gradient, a, conjugate, shape=[...]) = Σ gradient · conj(a)
// summed over the axes along which b is repeated; its conjugate with conjugate=1.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {

std::vector<Kernel> complex_mul_kernels();
std::vector<Kernel> complex_mul_grad_right_kernels();

namespace {

using List = std::vector<std::int64_t>;

const graph::AttributeSchema conjugate_schema{"conjugate", graph::AttributeType::integer,
                                              std::int64_t{0}};

const graph::Value& expect_complex(const OpView& op, std::size_t i) {
  const graph::Value& value = op.operand(i);
  expect_real(op, i);
  if (value.shape.rank() == 0 || value.shape.at(-1) != 2) {
    fail({.found = operand_text(op, i) + " of shape " + to_string(value.shape),
          .expected = "[..., 2], complex numbers"});
  }
  return value;
}

/// `found` says whose dimensions they are.
void expect_repeatable(const Shape& a, std::span<const std::int64_t> b, const std::string& found) {
  bool fits = b.size() == static_cast<std::size_t>(a.rank()) && b.back() == 2;
  for (std::size_t i = 0; fits && i + 1 < b.size(); ++i)
    fits = b[i] == 1 || b[i] == a[static_cast<int>(i)];
  if (fits) return;
  fail({.found = found,
        .expected = to_string(a) + ", the shape of 'a', or 1 in place of any axis but the last"});
}

Results infer_mul(const OpView& op) {
  const graph::Value& a = expect_complex(op, 0);
  expect_type(op, 1, a.type);
  const Shape& b = op.operand(1).shape;
  expect_repeatable(a.shape, b.dims(), operand_text(op, 1) + " of shape " + to_string(b));
  expect_flag(op, "conjugate");
  return {{a.type, a.shape}};
}

Results infer_grad_right(const OpView& op) {
  const graph::Value& gradient = expect_complex(op, 0);
  expect_like(op, 1, 0);
  const List& shape = op.attributes().integers("shape");
  expect_repeatable(gradient.shape, shape,
                    "shape=" + graph::to_string(*op.attributes().find("shape")));
  expect_flag(op, "conjugate");
  return {{gradient.type, Shape(shape)}};
}

void gradient(graph::GradientContext& context) {
  const ValueId gradient = context.result_gradient(0);
  if (!gradient) return;
  const std::int64_t conjugate = context.forward().integer("conjugate");
  const List shape = dims_of(context.forward().operand(1).shape);
  // First what only reads the gradient: then the other may take its place.
  if (context.wants(1)) {
    context.set(1, context.builder().add1("complex_mul_grad_right", {gradient, context.operand(0)},
                                          {{"conjugate", conjugate}, {"shape", shape}}));
  }
  if (context.wants(0)) {
    context.set(0, context.builder().add1("complex_mul", {gradient, context.operand(1)},
                                          {{"conjugate", 1 - conjugate}}));
  }
}

}  // namespace

void register_complex_mul(Registry& registry) {
  // Four products and two sums for each number of two elements; the gradient's sums two more.
  registry.add({.name = "complex_mul",
                .operands = {{"a"}, {"b"}},
                .results = {"y"},
                .attributes = {conjugate_schema},
                .infer = infer_mul,
                .gradient = gradient,
                .in_place = {{0, 0}},
                .cost = cost_each<3>,
                .of_share = rows_of_pair<2>},
               complex_mul_kernels());
  registry.add({.name = "complex_mul_grad_right",
                .operands = {{"gradient"}, {"a"}},
                .results = {"db"},
                .attributes = {conjugate_schema, {"shape", graph::AttributeType::integers, {}}},
                .infer = infer_grad_right,
                .cost = cost_each<4>},
               complex_mul_grad_right_kernels());
}

}  // namespace arenite::codelets
