// The formulas of formulas.def, as data.
#pragma once

#include <arenite/expr/expression.hpp>

#include <array>
#include <string>
#include <vector>

namespace arenite::expr {

struct Formula {
  struct Number {
    std::string name;
    double standard;  ///< where nobody gives another
    bool is_positive;
  };

  std::string_view name;
  bool is_operator;  ///< with no other rules than the formula's
  std::vector<std::string> operands;
  std::vector<Number> numbers;
  Expression (*make)(Type type, std::span<const double> numbers);
  std::array<Expression, 2> of_floats;  ///< with the standard numbers: of float32, of float64

  /// With its standard numbers; of floats.
  const Expression& standard(Type type) const noexcept { return of_floats[type == Type::float64]; }
};

inline constexpr std::size_t formula_count =
#define ARENITE_FORMULA(...) +1
#include "src/expr/formulas.def"
    ;

/// All, in the order of formulas.def.
std::span<const Formula> formulas();

/// nullptr: there is none of that name.
const Formula* find_formula(std::string_view name) noexcept;

}  // namespace arenite::expr
