#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

/// Codes that batch_gather writes to the status word. The results are zeros then.
enum class GatherFault : std::uint32_t {
  cursor = 1,  ///< the batch would reach beyond the order: every sample is zeros
  index = 2,   ///< an entry of the order names no image: that sample is zeros
};

std::vector<Kernel> batch_gather_kernels();

}  // namespace arenite::codelets
