#include "src/expr/formulas.hpp"

#include <arenite/expr/builder.hpp>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace arenite::expr {
namespace {

namespace of {
#include "src/expr/formulas.def"
}  // namespace of

/// Operands come first, then numbers.
template <class... Given>
Expression make_of(Value (*formula)(Given...), Type type, std::span<const double> numbers) {
  Builder builder;
  auto number = numbers.begin();
  const auto give = [&]<class T>(const T*) -> T {
    if constexpr (std::is_same_v<T, Value>) {
      return builder.operand(type);
    } else {
      return *number++;
    }
  };
  // In braces they are made from the first to the last.
  const std::tuple<Given...> given{give(static_cast<const Given*>(nullptr))...};
  return builder.finish({std::apply(formula, given)});
}

template <class F>
Expression make(Type type, std::span<const double> numbers) {
  return make_of(&F::template of<Value>, type, numbers);
}

/// "(T x, double delta = 1)".
Formula formula(std::string_view name, bool is_operator, std::string_view parameters,
                Expression (*make)(Type, std::span<const double>)) {
  Formula made{.name = name,
               .is_operator = is_operator,
               .operands = {},
               .numbers = {},
               .make = make,
               .of_floats = {}};
  std::vector<double> standards;
  parameters = parameters.substr(1, parameters.size() - 2);
  while (!parameters.empty()) {
    std::string_view one = parameters.substr(0, parameters.find(','));
    parameters.remove_prefix(std::min(one.size() + 1, parameters.size()));
    one.remove_prefix(one.find_first_not_of(' '));
    const std::size_t blank = one.find(' '), equals = one.find(" = ");
    const std::string own(one.substr(blank + 1, equals - blank - 1));
    if (one.starts_with("T ")) {
      made.operands.push_back(own);
    } else {
      double standard = 0;
      std::from_chars(one.data() + equals + 3, one.data() + one.size(), standard);
      made.numbers.push_back({own, standard, one.starts_with("Positive ")});
      standards.push_back(standard);
    }
  }
  made.of_floats = {make(Type::float32, standards), make(Type::float64, standards)};
  return made;
}

std::vector<Formula> all() {
  return {
#define ARENITE_FORMULA(NAME, OPERANDS, ...) formula(#NAME, true, #OPERANDS, &make<of::NAME>),
#define ARENITE_LOOP(NAME, OPERANDS, ...) formula(#NAME, false, #OPERANDS, &make<of::NAME>),
#include "src/expr/formulas.def"
  };
}

}  // namespace

std::span<const Formula> formulas() {
  static const std::vector<Formula> known = all();
  return known;
}

const Formula* find_formula(std::string_view name) noexcept {
  const auto found = std::ranges::find(formulas(), name, &Formula::name);
  return found == formulas().end() ? nullptr : &*found;
}

}  // namespace arenite::expr
