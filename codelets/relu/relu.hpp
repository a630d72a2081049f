#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> relu_kernels();
std::vector<runtime::Kernel> relu_grad_kernels();

}  // namespace arenite::codelets
