#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> dense_kernels();
std::vector<runtime::Kernel> dense_grad_input_kernels();
std::vector<runtime::Kernel> dense_grad_weight_kernels();
std::vector<runtime::Kernel> dense_grad_weight_sgd_kernels();

/// Kernels for few samples, one an operator.
runtime::Kernel dense_direct();
runtime::Kernel dense_direct_grad_input();
runtime::Kernel dense_direct_update();

}  // namespace arenite::codelets
