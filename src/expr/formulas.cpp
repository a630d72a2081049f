#include "src/expr/formulas.hpp"

#include <arenite/expr/builder.hpp>

#include "src/expr/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <tuple>
#include <unordered_map>

namespace arenite::expr {
namespace {

/// Of what lies in memory anyway.
Value keep(Value x) { return x; }

namespace of {
#include "src/expr/formulas.def"
}  // namespace of

Expression finish(const Builder& builder, Value result) { return builder.finish({result}); }
template <std::size_t count>
Expression finish(const Builder& builder, const std::array<Value, count>& results) {
  return builder.finish(results);
}

/// Operands come first, then numbers.
template <class Made, class... Given>
Expression make_of(Made (*formula)(Given...), Type type, std::span<const double> numbers) {
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
  return finish(builder, std::apply(formula, given));
}

template <class F>
Expression make(Type type, std::span<const double> numbers) {
  return make_of(&F::template of<Value>, type, numbers);
}

Formula::Number::Range range_named(std::string_view type) {
  using Range = Formula::Number::Range;
  return type == "Positive"      ? Range::positive
         : type == "NotNegative" ? Range::not_negative
         : type == "Fraction"    ? Range::from_0_to_below_1
                                 : Range::any;
}

/// Nodes that are made of others.
std::size_t computed(const Expression& expression) {
  return static_cast<std::size_t>(std::ranges::count_if(
      expression.nodes(), [](const Node& node) { return !sources_of(node).empty(); }));
}

struct Kind {
  bool is_operator = false, is_of_rows = false, is_optimizer = false;
  double learning_rate = 0;
  std::string_view each_step = {};
};

/// "(T x, double delta = 1)".
Formula formula(std::string_view name, const Kind& kind, std::string_view parameters,
                Expression (*make)(Type, std::span<const double>)) {
  Formula made{.name = std::string(name),
               .is_operator = kind.is_operator,
               .is_of_rows = kind.is_of_rows,
               .is_optimizer = kind.is_optimizer,
               .learning_rate = kind.learning_rate,
               .each_step = {},
               .operands = {},
               .numbers = {},
               .make = make,
               .of_floats = {},
               .least_computed = 0,
               .most_computed = 0};
  std::vector<double> standards, uneven;
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
      made.numbers.push_back({own, standard, range_named(one.substr(0, blank))});
      standards.push_back(standard);
      uneven.push_back(0.3671875 * static_cast<double>(standards.size()));
    }
  }
  made.of_floats = {make(Type::float32, standards), make(Type::float64, standards)};
  made.least_computed = computed(made.standard(Type::float32));
  made.most_computed = computed(make(Type::float32, uneven));
  return made;
}

/// One by one: a list of all would stand on the stack.
std::vector<Formula> all() {
  std::vector<Formula> made;
  std::vector<std::string_view> each_step;  // by formula
  const auto add = [&](std::string_view name, const Kind& kind, std::string_view parameters,
                       Expression (*make)(Type, std::span<const double>)) {
    made.push_back(formula(name, kind, parameters, make));
    each_step.push_back(kind.each_step);
  };
#define ARENITE_MADE(NAME, GIVEN, ...) add(#NAME, {__VA_ARGS__}, #GIVEN, &make<of::NAME>);
#define ARENITE_FORMULA(NAME, GIVEN, ...) ARENITE_MADE(NAME, GIVEN, true)
#define ARENITE_LOOP(NAME, GIVEN, ...) ARENITE_MADE(NAME, GIVEN)
#define ARENITE_ROWS(NAME, GIVEN, ...) ARENITE_MADE(NAME, GIVEN, true, true)
#define ARENITE_ROWS_LOOP(NAME, GIVEN, ...) ARENITE_MADE(NAME, GIVEN, false, true)
#define ARENITE_OPTIMIZER(NAME, RATE, EACH_STEP, GIVEN, ...) \
  ARENITE_MADE(NAME, GIVEN, false, false, true, RATE, #EACH_STEP)
#define ARENITE_ROWS_OPTIMIZER(NAME, RATE, EACH_STEP, GIVEN, ...) \
  ARENITE_MADE(NAME, GIVEN, false, true, true, RATE, #EACH_STEP)
#include "src/expr/formulas.def"
#undef ARENITE_MADE
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (each_step[i].empty() || each_step[i] == "none") continue;
    const auto found = std::ranges::find(made, each_step[i], &Formula::name);
    made[i].each_step = std::make_shared<const Formula>(*found);
  }
  return made;
}

}  // namespace

std::span<const Formula> formulas() {
  static const std::vector<Formula> known = all();
  return known;
}

namespace {

/// Tries the standard number and all constants for the numbers from this one on.
bool is_same(const Formula& formula, const Expression& expression,
             std::span<const double> constants, std::vector<double>& numbers) {
  if (numbers.size() == formula.numbers.size())
    return formula.make(Type::float32, numbers) == expression;
  const auto is_it = [&](double number) {
    numbers.push_back(number);
    if (is_same(formula, expression, constants, numbers)) return true;
    numbers.pop_back();
    return false;
  };
  const double standard = formula.numbers[numbers.size()].standard;
  return is_it(standard) || std::ranges::any_of(constants, is_it);
}

/// The number with the fewest digits of those that a float32 holds so: what has been written.
double written(float constant) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.begin(), text.end(), constant).ptr;
  double number = 0;
  std::from_chars(text.begin(), end, number);
  return number;
}

std::optional<FoundFormula> search(const Expression& expression) {
  constexpr std::size_t most_constants =
      8;  // formulas have fewer, and all are tried for each number
  std::vector<double> constants;
  for (const Node& node : expression.nodes()) {
    if (node.function == Function::constant && node.type == Type::float32)
      constants.push_back(written(value_of<float>(node.payload)));
  }
  const std::size_t count = computed(expression);
  const auto known = formulas();
  for (std::size_t i = 0; i < known.size(); ++i) {
    FoundFormula found{i, {}};
    if (known[i].standard(Type::float32) == expression) {
      for (const auto& number : known[i].numbers) found.numbers.push_back(number.standard);
      return found;
    }
    const bool may_be =
        !known[i].numbers.empty() && known[i].least_computed <= count &&
        count <= known[i].most_computed && constants.size() <= most_constants &&
        known[i].operands.size() == expression.operands().size() &&
        known[i].standard(Type::float32).results().size() == expression.results().size();
    if (may_be && is_same(known[i], expression, constants, found.numbers)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundFormula> find_formula(const Expression& expression) {
  constexpr std::size_t most_kept = 256;
  struct Known {
    Expression expression;
    std::optional<FoundFormula> found;
  };
  static std::mutex mutex;
  static std::unordered_map<std::uint64_t, Known> all;
  const std::uint64_t hash = expression.hash();
  const std::lock_guard lock(mutex);
  const auto known = all.find(hash);
  if (known != all.end() && known->second.expression == expression) return known->second.found;
  if (all.size() == most_kept) all.clear();
  return all.insert_or_assign(hash, Known{expression, search(expression)}).first->second.found;
}

const Formula* find_formula(std::string_view name) noexcept {
  const auto found = std::ranges::find(formulas(), name, &Formula::name);
  return found == formulas().end() ? nullptr : &*found;
}

}  // namespace arenite::expr
