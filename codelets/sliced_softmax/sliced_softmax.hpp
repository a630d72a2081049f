#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

/// Codes that sliced_softmax and its gradient write to the status word.
enum class PrefixFault : std::uint32_t {
  range = 1,  ///< a prefix outside 0..C: the op copies, as with a prefix of 0
};

std::vector<runtime::Kernel> softmax_kernels();
std::vector<runtime::Kernel> sliced_softmax_kernels();
std::vector<runtime::Kernel> sliced_softmax_grad_kernels();

}  // namespace arenite::codelets
