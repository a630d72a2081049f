// relu(x) = max(x, 0), element by element, float32 or float64; a NaN stays a NaN. The gradient
// reads the output, not the input, so that the forward op may run in place.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/share.hpp"

namespace arenite::codelets {

std::vector<Kernel> relu_kernels();
std::vector<Kernel> relu_grad_kernels();

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
