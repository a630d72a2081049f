#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> complex_mul_kernels();
std::vector<runtime::Kernel> complex_mul_grad_right_kernels();

}  // namespace arenite::codelets
