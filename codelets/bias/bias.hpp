#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> bias_kernels();
std::vector<runtime::Kernel> bias_grad_kernels();

}  // namespace arenite::codelets
