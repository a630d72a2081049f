// bias_grad(gradient [..., C]) -> [C]: the sum over all axes but the last.
#include "codelets/last_axis.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<Kernel> bias_grad_kernels();

void register_bias(Registry& registry) {
  registry.add({.name = "bias_grad",
                .operands = {{"gradient"}},
                .results = {"dbias"},
                .infer = [](const OpView& op) -> Results {
                  return {{DType::float32, {expect_last_axis(op, 0).at(-1)}}};
                },
                .cost = cost_each<1>},
               bias_grad_kernels());
}

}  // namespace arenite::codelets
