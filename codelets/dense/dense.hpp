#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> dense_kernels();
std::vector<runtime::Kernel> dense_grad_input_kernels();
std::vector<runtime::Kernel> dense_grad_weight_kernels();

}  // namespace arenite::codelets
