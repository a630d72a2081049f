// The derivative of an expression, which is an expression again.
#pragma once

#include <arenite/expr/expression.hpp>

#include <cstddef>
#include <optional>

namespace arenite::expr {

/// What an operand of a gradient is.
struct GradientOperand {
  enum class Kind : std::uint8_t {
    seed,     ///< the gradient of a result of the expression
    operand,  ///< an operand of it
    result,   ///< a result of it
  };
  Kind kind = Kind::seed;
  std::size_t number = 0;  ///< of that result or operand

  friend bool operator==(const GradientOperand&, const GradientOperand&) = default;
};

struct Gradient {
  Expression expression;
  std::vector<GradientOperand> operands;  ///< by operand of the expression: no more than it reads
  std::vector<std::size_t> of;            ///< by result of it: the operand whose gradient that is
};

/// The sums over results of seed · d result / d operand, for each operand that is wanted and has
/// one. By result: `seeded`, there is a gradient of it; `at_hand`, it may be read, as it is where
/// that is enough (tanh and sigmoid are differentiated from their results). None where no wanted
/// operand has a gradient: integers have none, nor has what only comparisons and roundings read.
///
/// Kinks are as in PyTorch: abs has 0 at 0, min and max give each of two equal values half, and
/// both all of it where one is NaN; of a select only what it takes has one, so that
/// `select(x <= 0, 0, x)` has 0 at 0. What it leaves out may still make NaN: an infinite slope · 0.
///
/// Where the expression reduces groups, of `group` elements, so may the gradient, and the gradient
/// of what is one for a group is its elements' sum. Several least or greatest elements share alike.
std::optional<Gradient> derive(const Expression& expression, const std::vector<bool>& seeded,
                               const std::vector<bool>& wanted, const std::vector<bool>& at_hand,
                               std::int64_t group = 1);

}  // namespace arenite::expr
