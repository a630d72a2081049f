// What all folders speak of.
#pragma once

#include <arenite/runtime/kernel.hpp>

namespace arenite::codelets {

using graph::OpView;
using graph::ValueId;
using runtime::Kernel;
using runtime::KernelCall;
using runtime::PreparedKernel;

}  // namespace arenite::codelets
