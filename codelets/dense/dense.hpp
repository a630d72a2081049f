#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> dense_kernels();
std::vector<runtime::Kernel> dense_grad_input_kernels();
std::vector<runtime::Kernel> dense_grad_weight_kernels();
std::vector<runtime::Kernel> dense_grad_weight_sgd_kernels();

/// Of dense_grad_weight_sgd, for few samples.
runtime::Kernel dense_direct_update();

}  // namespace arenite::codelets
