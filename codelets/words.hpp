// Names of the graph and the runtime that all of codelets uses without their namespaces.
#pragma once

#include <arenite/runtime/kernel.hpp>

namespace arenite::codelets {

using graph::OpView;
using graph::ValueId;
using runtime::Kernel;
using runtime::KernelCall;
using runtime::PreparedKernel;
using Results = std::vector<graph::ResultType>;

}  // namespace arenite::codelets
