#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> rms_norm_kernels();
std::vector<runtime::Kernel> rms_norm_grad_input_kernels();
std::vector<runtime::Kernel> rms_norm_grad_weight_kernels();

}  // namespace arenite::codelets
