#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> mul_kernels();

}  // namespace arenite::codelets
