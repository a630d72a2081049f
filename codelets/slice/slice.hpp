#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> slice_grad_kernels();

}  // namespace arenite::codelets
