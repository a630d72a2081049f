#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> silu_kernels();
std::vector<runtime::Kernel> silu_grad_kernels();

}  // namespace arenite::codelets
