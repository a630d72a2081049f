// sliced_softmax(x [..., C], prefix_value int64 [1]?, prefix=-1) -> y: exp(x) / Σ exp(x) over the
// first `prefix` elements of the last axis; those behind them are copied. The prefix is either the
// attribute, or the operand where only a step knows it: see PrefixFault.
// sliced_softmax_grad(gradient, y, prefix_value?, prefix) is its gradient. It reads the result, not
// x, so that the forward op may run in place.
#include "codelets/sliced_softmax/sliced_softmax.hpp"

namespace arenite::codelets {
namespace {

const graph::OperandSchema value_schema{.name = "prefix_value", .optional = true};
const graph::AttributeSchema prefix_schema{"prefix", graph::AttributeType::integer,
                                           std::int64_t{-1}};

/// `value`: which operand prefix_value is.
void expect_prefix(const OpView& op, std::size_t value, const Shape& shape) {
  const std::int64_t prefix = op.integer("prefix"), last = shape.at(-1);
  const bool given = prefix != -1;
  if (op.has_operand(value)) {
    expect_value(op, value, DType::int64, {1}, "the length of the prefix");
    if (!given) return;
    fail({.found = "prefix=" + std::to_string(prefix) + " and " + operand_text(op, value),
          .expected = "only one of the two"});
  }
  if (!given) {
    fail({.found = "neither attribute 'prefix' nor operand 'prefix_value'",
          .expected = "one of the two"});
  }
  if (prefix < 0 || prefix > last) {
    fail({.found = "prefix=" + std::to_string(prefix),
          .expected = "0 ≤ prefix ≤ " + std::to_string(last) + ", as '" +
                      op.op().definition->operand_schema(0).name + "' has the shape " +
                      to_string(shape)});
  }
}

Results infer_sliced(const OpView& op) {
  const Shape& x = expect_last_axis(op, 0);
  expect_prefix(op, 1, x);
  return {{DType::float32, x}};
}

Results infer_grad(const OpView& op) {
  const Shape& gradient = expect_last_axis(op, 0);
  expect_like(op, 1, 0);
  expect_prefix(op, 2, gradient);
  return {{DType::float32, gradient}};
}

ValueId sliced_gradient(graph::GradientContext& context, ValueId gradient) {
  std::vector<ValueId> operands{gradient, context.result(0)};
  if (context.forward().has_operand(1)) operands.push_back(context.operand(1));
  return context.builder().add1("sliced_softmax_grad", operands,
                                {{"prefix", context.forward().integer("prefix")}});
}

/// About twenty operations an exponential.
constexpr int softmax_flops = 25, grad_flops = 4;

}  // namespace

void register_sliced_softmax(Registry& registry) {
  const auto fault = faults({{static_cast<std::uint32_t>(PrefixFault::range),
                              "a prefix that is negative or longer than the last axis"}});

  registry.add({.name = "sliced_softmax",
                .operands = {{"x"}, value_schema},
                .results = {"y"},
                .attributes = {prefix_schema},
                .infer = infer_sliced,
                .gradient = gradient_of_first(sliced_gradient),
                .in_place = {{0, 0}},
                .cost = cost_each<softmax_flops>,
                .of_share = rows_of_first<2>,
                .fault = fault},
               sliced_softmax_kernels());
  registry.add({.name = "sliced_softmax_grad",
                .operands = {{"gradient"}, {"y"}, value_schema},
                .results = {"dx"},
                .attributes = {prefix_schema},
                .infer = infer_grad,
                .in_place = {{0, 0}, {0, 1}},
                .cost = cost_each<grad_flops>,
                .fault = fault},
               sliced_softmax_grad_kernels());
}

}  // namespace arenite::codelets
