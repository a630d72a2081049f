#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> assign_kernels();
std::vector<runtime::Kernel> identity_kernels();

}  // namespace arenite::codelets
