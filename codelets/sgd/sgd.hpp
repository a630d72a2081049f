#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> sgd_kernels();

}  // namespace arenite::codelets
