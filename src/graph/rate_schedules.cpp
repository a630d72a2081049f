#include "src/graph/rate_schedules.hpp"

#include <arenite/error.hpp>

#include "src/base/nearest.hpp"

#include <algorithm>
#include <cmath>

namespace arenite::graph {
namespace {

// PyTorch's schedulers, told of each step, as parts of the first rate.
constexpr RateSchedule all[] = {
    {"constant", "steps, factor = 0.3333333333333333", "select(t < steps, float64(factor), 1)"},
    {"cosine", "steps, least = 0, warm_up = 0",
     "way = min(max(t - warm_up, 0) / max(float64(steps - warm_up), 1), 1); "
     "yield select(t < warm_up, (t + 1) / warm_up, "
     "least + (1 - least) * 0.5 * (1 + cos(way * 3.141592653589793)))"},
    {"cosine_restarts", "period, least = 0",
     "way = t / period - floor(t / period); "
     "yield least + (1 - least) * 0.5 * (1 + cos(way * 3.141592653589793))"},
    {"exponential", "gamma", "pow(gamma, t)"},
    {"linear", "steps, first = 0.3333333333333333, last = 1",
     "first + (last - first) * min(t / steps, 1)"},
    {"multi_step", "at[], gamma = 0.1", "pow(gamma, at)"},
    {"one_cycle", "steps, up <= 1 = 0.3, first = 0.04, last = 4e-6",
     "top = max(float64(up * steps - 1), 1e-9); "
     "rise = first + (1 - first) * 0.5 * (1 - cos(t / top * 3.141592653589793)); "
     "way = min((t - top) / max(steps - 1 - top, 1e-9), 1); "
     "yield select(t <= top, rise, last + (1 - last) * 0.5 * (1 + cos(way * 3.141592653589793)))"},
    {"polynomial", "steps, power = 1", "pow(1 - min(t / steps, 1), power)"},
    {"staircase", "steps, gamma = 0.1", "pow(gamma, floor(t / steps))"},
    {"triangle", "up, down, first = 0.1",
     "way = t - (up + down) * floor(t / (up + down)); "
     "yield first + (1 - first) * select(way < up, way / up, (up + down - way) / down)"},
};

struct Number {
  std::string_view name, standard;  // as they are written; empty: it has to be given
  bool is_part = false;             // at most 1
  bool is_list = false;             // of steps: so many of them have been

  bool takes(const Attributes& given) const {
    if (!is_list) return takes(given.real(name));
    const auto* steps = std::get_if<std::vector<std::int64_t>>(given.find(name));
    return steps != nullptr && !steps->empty() &&
           std::ranges::all_of(*steps, [](std::int64_t step) { return step >= 0; });
  }
  bool takes(double number) const noexcept {
    return std::isfinite(number) && number >= 0 && (!is_part || number <= 1) &&
           (number > 0 || !standard.empty());
  }
  std::string expected() const {
    return is_list            ? "a list of steps, as in [30, 80]"
           : is_part          ? "a number from 0 to 1"
           : standard.empty() ? "a finite number above 0"
                              : "a finite number of at least 0";
  }
};

std::vector<Number> numbers_of(const RateSchedule& schema) {
  std::vector<Number> numbers;
  for (std::string_view rest = schema.numbers; !rest.empty();) {
    std::string_view one = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(one.size() + 2, rest.size()));
    const std::size_t equals = one.find(" = ");
    numbers.push_back({.name = one.substr(0, one.find_first_of(" [")),
                       .standard = equals == one.npos ? "" : one.substr(equals + 3),
                       .is_part = one.find(" <= 1") != one.npos,
                       .is_list = one.find("[]") != one.npos});
  }
  return numbers;
}

/// As the formula has it.
std::string number_text(const AttributeValue& value) {
  const auto* steps = std::get_if<std::vector<std::int64_t>>(&value);
  if (steps == nullptr) return to_string(value);
  std::string text;
  for (const std::int64_t step : *steps) {
    text += (text.empty() ? "" : " + ") + std::string("select(t < ") + std::to_string(step) +
            ", 0.0, float64(1))";
  }
  return text;
}

const RateSchedule& named(std::string_view name) {
  std::string known;
  Nearest nearest(name);
  for (const RateSchedule& one : all) {
    if (one.name == name) return one;
    known += (known.empty() ? "" : ", ") + std::string(one.name);
    nearest.consider(one.name);
  }
  fail({.found = "schedule '" + std::string(name) + "'",
        .expected = "one of " + known,
        .hint = nearest.hint()});
}

}  // namespace

std::span<const RateSchedule> rate_schedules() { return all; }

std::string rate_schedule(std::string_view name, const Attributes& given) {
  const RateSchedule& schema = named(name);
  const std::vector<Number> numbers = numbers_of(schema);
  const std::string whose = "schedule '" + std::string(name) + "'",
                    expected = "numbers " + std::string(schema.numbers);
  for (const auto& [number, value] : given.items()) {
    const auto known = std::ranges::find(numbers, number, &Number::name);
    if (known == numbers.end())
      fail({.found = whose + " with '" + number + "'", .expected = expected});
    if (!known->takes(given)) {
      fail({.found = whose + " with " + number + "=" + to_string(value),
            .expected = known->expected()});
    }
  }
  std::string text = "t = $1 - 1; ";
  for (const Number& number : numbers) {
    const AttributeValue* value = given.find(number.name);
    if (value == nullptr && number.standard.empty())
      fail({.found = whose + " without '" + std::string(number.name) + "'", .expected = expected});
    text += std::string(number.name) + " = " +
            (value != nullptr ? number_text(*value) : std::string(number.standard)) + "; ";
  }
  const bool is_one = schema.formula.find("yield ") == std::string_view::npos;
  return text + (is_one ? "yield " : "") + std::string(schema.formula);
}

}  // namespace arenite::graph
