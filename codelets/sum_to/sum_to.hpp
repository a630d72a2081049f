#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> sum_to_kernels();

}  // namespace arenite::codelets
