// sum_to(x, shape): the sum over the axes where `shape` is 1 and x is not; the rank stays. What
// broadcast_to repeats, backwards. Each sum is taken in a fixed order, in double.
#include "codelets/broadcast.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<Kernel> sum_to_kernels();

namespace {

Results infer(const OpView& op) {
  expect_real(op, 0);
  const graph::Value& x = op.operand(0);
  const std::vector<std::int64_t>& dims = op.attributes().integers("shape");
  if (!fills(dims, x.shape.dims())) {
    fail({.found = "shape=" + graph::to_string(*op.attributes().find("shape")),
          .expected = to_string(x.shape) + ", the shape of 'x', where any size may be 1"});
  }
  return {{x.type, Shape(dims)}};
}

/// The sum over the first axis is one over shares, too.
std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  if (!share.has_rows(0)) return std::nullopt;
  if (op.result(0).shape[0] == op.operand(0).shape[0])
    return all_rows(op, with_rows(op, "shape", share));
  return graph::OfShare{.results = {graph::OfShare::Result::sum}, .attributes = op.attributes()};
}

}  // namespace

void register_sum_to(Registry& registry) {
  registry.add(
      {.name = "sum_to",
       .operands = {{"x"}},
       .results = {"y"},
       .attributes = {{"shape", graph::AttributeType::integers, {}}},
       .infer = infer,
       .gradient = gradient_of_first([](graph::GradientContext& context, ValueId gradient) {
         return repeated_like(context.builder(), gradient, context.operand(0));
       }),
       .cost = cost_each<1>,
       .of_share = of_share},
      sum_to_kernels());
}

}  // namespace arenite::codelets
