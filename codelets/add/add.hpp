#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> add_kernels();

}  // namespace arenite::codelets
