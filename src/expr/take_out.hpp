// Parts an expression in what it computes of one operand alone, which is the same for all elements,
// and the rest.
#pragma once

#include <arenite/expr/expression.hpp>

namespace arenite::expr {

struct TakenOut {
  Expression once;  ///< of that operand
  /// Of the other operands, and, behind them, of the results of `once`, each as a float32.
  Expression rest;
};

/// Throws Error where a result is of that operand alone.
TakenOut take_out(const Expression& expression, std::size_t operand);

}  // namespace arenite::expr
