#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> permute_kernels();

}  // namespace arenite::codelets
