// The formulas of formulas.def, as data.
#pragma once

#include <arenite/expr/expression.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace arenite::expr {

struct Formula {
  struct Number {
    enum class Range : std::uint8_t { any, positive, not_negative, from_0_to_below_1 };

    std::string name;
    double standard;  ///< where nobody gives another
    Range range;
  };

  std::string name;
  bool is_operator;  ///< with no other rules than the formula's
  bool is_of_rows;   ///< it reduces groups of elements: rows along the last axis
  bool is_optimizer;
  double learning_rate;  ///< with which an optimizer begins
  /// What of an optimizer is new in each step: of its number, from 1 on. Absent: nothing.
  std::shared_ptr<const Formula> each_step;
  std::vector<std::string> operands;
  std::vector<Number> numbers;
  std::function<Expression(Type type, std::span<const double> numbers)> make;
  std::array<Expression, 2> of_floats;  ///< with the standard numbers: of float32, of float64
  /// Nodes that are made of others, with standard numbers, and with such that no part is simpler.
  std::size_t least_computed, most_computed;

  /// With its standard numbers; of floats.
  const Expression& standard(Type type) const noexcept { return of_floats[type == Type::float64]; }
  /// −0 is taken for 0: a formula steps over an operation where such a number is either.
  Expression with(Type type, std::span<const double> given) const {
    return std::ranges::equal(given, numbers, {}, {}, &Number::standard) ? standard(type)
                                                                         : make(type, given);
  }
};

/// All, in the order of formulas.def.
std::span<const Formula> formulas();

/// The formula, by its place among all, and the numbers with which it is an expression of float32;
/// none where there is none, or one of numbers with more digits than a float32 has. Looking for
/// numbers takes time: what was asked last is known.
struct FoundFormula {
  std::size_t formula;
  std::vector<double> numbers;
};
std::optional<FoundFormula> find_formula(const Expression& expression);

/// nullptr: there is none of that name.
const Formula* find_formula(std::string_view name) noexcept;

}  // namespace arenite::expr
