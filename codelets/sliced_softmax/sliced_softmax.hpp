#pragma once

#include "codelets/last_axis.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets {

/// Codes that sliced_softmax and its gradient write to the status word.
enum class PrefixFault : std::uint32_t {
  range = 1,  ///< a prefix outside 0..C: the op copies, as with a prefix of 0
};

/// What the kernels know of an op: its rows, and how much of each is the prefix.
struct PrefixedRows {
  LastAxis axis;
  std::int64_t prefix = -1;  ///< -1: an operand says

  static PrefixedRows sliced(const OpView& op) {
    return {LastAxis(op.operand(0).shape), op.integer("prefix")};
  }
};

std::vector<Kernel> sliced_softmax_kernels();
std::vector<Kernel> sliced_softmax_grad_kernels();

}  // namespace arenite::codelets
