// relu(x) = max(x, 0), element by element, float32 or float64; a NaN stays a NaN. The gradient
// reads the output, not the input, so that the forward op may run in place.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

namespace arenite::codelets {

std::vector<Kernel> relu_kernels();
std::vector<Kernel> relu_grad_kernels();

namespace {

/// What is not below 0 stays what it is.
std::optional<Simpler> simplify(const OpView& op) {
  if (made_by(op, 0, "relu")) return is_value(op.op().operands[0]);
  const auto number = constant(op, 0);
  const auto tiny = [&] {
    return op.operand(0).type == DType::float64 ? flushes(*number)
                                                : flushes(static_cast<float>(*number));
  };
  return number && !tiny() ? is_full(op, *number <= 0 ? 0 : *number) : std::nullopt;
}

}  // namespace

void register_relu(Registry& registry) {
  registry.add(
      {.name = "relu",
       .operands = {{"x"}},
       .results = {"y"},
       .infer = infer_alike,
       .gradient = gradient_of_first([](graph::GradientContext& context, ValueId gradient) {
         return context.builder().add1("relu_grad", {gradient, context.result(0)});
       }),
       .in_place = {{0, 0}},
       .cost = cost_each<1>,
       .simplify = simplify,
       .of_share = rows_of_first<>},
      relu_kernels());
  registry.add({.name = "relu_grad",
                .operands = {{"gradient"}, {"output"}},
                .results = {"dx"},
                .infer = infer_alike,
                .in_place = {{0, 0}, {0, 1}},
                .cost = cost_each<1>},
               relu_grad_kernels());
}

}  // namespace arenite::codelets
