#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> accumulate_kernels();

}  // namespace arenite::codelets
