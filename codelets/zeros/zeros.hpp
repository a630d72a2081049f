#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> zeros_kernels();

}  // namespace arenite::codelets
