// Formulas by name, each with what it is in double: a line for each of them.
#include "tests/reference/operator_cases.hpp"
#include "tests/reference/rules.hpp"

#include <cmath>

namespace arenite::reference {
namespace {

struct Fixture {
  const char* name;
  std::size_t operands;
  graph::Attributes attributes;
  std::vector<double> kinks;  ///< of the first operand, or of its difference to the second
  double (*of)(double x, double y);
};

double softplus(double x) { return x > 40 ? x : std::log(1 + std::exp(x)); }

const std::vector<Fixture>& fixtures() {
  static const std::vector<Fixture> all{
      {"add", 2, {}, {}, [](double x, double y) { return x + y; }},
      {"bias", 2, {}, {}, [](double x, double y) { return x + y; }},
      {"gelu", 1, {}, {}, [](double x, double) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
      {"hard_swish",
       1,
       {},
       {-3, 3},
       [](double x, double) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }},
      {"huber",
       2,
       {{"delta", 0.5}},
       {-0.5, 0.5},
       [](double x, double y) {
         return std::fabs(x - y) < 0.5 ? (x - y) * (x - y) / 2 : (std::fabs(x - y) - 0.25) / 2;
       }},
      {"huber",
       2,
       {},
       {-1, 1},
       [](double x, double y) {
         return std::fabs(x - y) < 1 ? (x - y) * (x - y) / 2 : std::fabs(x - y) - 0.5;
       }},
      {"mish", 1, {}, {}, [](double x, double) { return x * std::tanh(softplus(x)); }},
      {"mul", 2, {}, {}, [](double x, double y) { return x * y; }},
      {"relu", 1, {}, {0}, [](double x, double) { return x > 0 ? x : 0; }},
      {"scale_by", 2, {}, {}, [](double x, double y) { return x * y; }},
      {"silu", 1, {}, {}, [](double x, double) { return x / (1 + std::exp(-x)); }},
      {"softplus", 1, {}, {}, [](double x, double) { return softplus(x); }},
  };
  return all;
}

/// The one of this name that has these attributes; a number that is left out is its standard one.
const Fixture& fixture_of(std::string_view name, Call& call) {
  for (const Fixture& one : fixtures()) {
    if (one.name == name && (one.attributes.items().empty() || one.attributes == call.attributes()))
      return one;
  }
  throw std::logic_error("no fixture of " + std::string(name));
}

}  // namespace

std::vector<OperatorCase> formula_cases(DType type) {
  std::vector<OperatorCase> all;
  for (const Fixture& one : fixtures()) {
    std::vector<CaseOperand> operands{{{2, 3, 3, 5}, true, type, -4, 4}};
    for (std::size_t i = 1; i < one.operands; ++i) operands.push_back({{3, 1}, true, type, -1, 1});
    all.push_back({one.name, std::move(operands), one.attributes});
  }
  return all;
}

void add_formula_rules(Rules& rules) {
  for (const Fixture& named : fixtures()) {
    rules[named.name] = [name = std::string(named.name)](Call& call) {
      const Fixture& one = fixture_of(name, call);
      Tensor& y = call.out(0);
      for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
        double given[2] = {};
        for (std::size_t k = 0; k < one.operands; ++k)
          given[k] = call.in(k)[seen_at(y.shape, call.in(k).shape, i)];
        for (const double kink : one.kinks)
          call.decide(given[0] - given[1] < kink, std::fabs(given[0] - given[1] - kink));
        y[i] = one.of(given[0], given[1]);
      }
    };
  }
}

}  // namespace arenite::reference
