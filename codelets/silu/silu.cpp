// silu(x) = x · sigmoid(x), element by element; a NaN stays a NaN. The output does not tell x, so
// that the gradient reads x itself.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {

std::vector<Kernel> silu_kernels();
std::vector<Kernel> silu_grad_kernels();

void register_silu(Registry& registry) {
  constexpr auto cost = cost_each<25>;  // about twenty operations an exponential
  registry.add(
      {.name = "silu",
       .operands = {{"x"}},
       .results = {"y"},
       .infer = infer_alike,
       .gradient = gradient_of_first([](graph::GradientContext& context, ValueId gradient) {
         return context.builder().add1("silu_grad", {gradient, context.operand(0)});
       }),
       .in_place = {{0, 0}},
       .cost = cost,
       .of_share = rows_of_first<>},
      silu_kernels());
  registry.add({.name = "silu_grad",
                .operands = {{"gradient"}, {"x"}},
                .results = {"dx"},
                .infer = infer_alike,
                .in_place = {{0, 0}, {0, 1}},
                .cost = cost},
               silu_grad_kernels());
}

}  // namespace arenite::codelets
