#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> matmul_kernels();

}  // namespace arenite::codelets
