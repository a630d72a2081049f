#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> stack_columns_kernels();
std::vector<runtime::Kernel> join_columns_kernels();

}  // namespace arenite::codelets
