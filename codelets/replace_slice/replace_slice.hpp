#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> replace_slice_kernels();
std::vector<runtime::Kernel> update_slice_kernels();

}  // namespace arenite::codelets
