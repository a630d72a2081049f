// Loops that run a whole formula at once: those of formulas.def, of float32.
#pragma once

#include <arenite/expr/expression.hpp>

#include <vector>

namespace arenite::expr {

/// Makes so many elements of the results. An operand that is the same for all of them holds one
/// vector of it, 16 elements, and its bit in `splats` is set. Results may lie where operands
/// do. The bits are those of the formula's instructions one by one.
using FusedLoop = void (*)(void* const* results, const void* const* operands, std::uint64_t splats,
                           std::size_t count, const double* numbers);

struct Fused {
  FusedLoop loop = nullptr;  ///< nullptr: there is none
  std::vector<double> numbers;

  void run(void* const* results, const void* const* operands, std::uint64_t splats,
           std::size_t count) const {
    loop(results, operands, splats, count, numbers.data());
  }
  explicit operator bool() const noexcept { return loop != nullptr; }
};

/// The loop for an expression. Throws Error as find_loop does.
Fused find_fused(const Expression& expression);

}  // namespace arenite::expr
