#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<Kernel> dense_kernels();
std::vector<Kernel> dense_grad_input_kernels();
std::vector<Kernel> dense_grad_weight_kernels();
std::vector<Kernel> dense_grad_weight_sgd_kernels();

/// Kernels for few samples, one an operator.
Kernel dense_direct();
Kernel dense_direct_grad_input();
Kernel dense_direct_update();

}  // namespace arenite::codelets
