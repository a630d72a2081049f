#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> index_sum_kernels();

}  // namespace arenite::codelets
