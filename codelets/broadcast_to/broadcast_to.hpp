#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

std::vector<runtime::Kernel> broadcast_to_kernels();

}  // namespace arenite::codelets
