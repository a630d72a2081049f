// Products of factors rounded to bfloat16 (runtime::Compute::bfloat16).
//
// All values stay float32: parameters and the optimizer's state too. A kernel for bfloat16 is one
// for float32 whose factors are rounded first. float32 holds products of such numbers exactly, so
// that this is what hardware for bfloat16 does which adds in float32. Kernels that transform their
// factors (Winograd) err as they do in float32.
#pragma once

#include "codelets/words.hpp"

#include <vector>

namespace arenite::codelets {

/// Behind the kernels of an operator with factors, one for Compute::bfloat16 for each that is for
/// float32 and runs on the CPU: it rounds the factors into its workspace, and runs that one. Takes
/// only ops all of whose factors are float32.
void add_rounding_kernels(const graph::OperatorDefinition& definition,
                          std::vector<Kernel>& kernels);

}  // namespace arenite::codelets
