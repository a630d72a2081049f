#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

/// Codes that softmax_cross_entropy writes to the status word.
enum class LabelFault : std::uint32_t {
  range = 1,  ///< a label outside 0..C−1: that row adds nothing to the sums, its gradient is zeros
};

std::vector<runtime::Kernel> softmax_cross_entropy_kernels();
std::vector<runtime::Kernel> scale_by_kernels();

}  // namespace arenite::codelets
