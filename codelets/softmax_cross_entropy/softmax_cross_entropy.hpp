#pragma once

#include "codelets/registry.hpp"

namespace arenite::codelets {

/// The code that softmax_cross_entropy writes to the status word of a row whose label is outside
/// 0..C−1, unless its weight is 0: it adds nothing to the sums, and its gradient is zeros.
constexpr std::uint32_t label_fault(std::int64_t row) noexcept {
  return static_cast<std::uint32_t>(row) + 1;
}

/// What its kernels know of an op.
struct LossSizes {
  std::int64_t rows = 0, classes = 0;
  double divisor = 1;
  bool weighted = false;

  explicit LossSizes(const OpView& op)
      : rows(op.operand(0).shape[0]), classes(op.operand(0).shape[1]), weighted(op.has_operand(2)) {
    const std::int64_t given = op.integer("divisor");
    divisor = static_cast<double>(given > 0 ? given : rows);
  }
};

std::vector<Kernel> softmax_cross_entropy_kernels();

}  // namespace arenite::codelets
