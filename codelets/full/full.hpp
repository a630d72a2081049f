#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> full_kernels();

}  // namespace arenite::codelets
