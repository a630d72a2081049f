#include "tests/reference/operator_cases.hpp"

#include <algorithm>
#include <iterator>

namespace arenite::reference {
namespace {

using List = std::vector<std::int64_t>;

/// Axes within others, at both ends, all of them, and none.
struct Repeat {
  Shape whole, part;
};

const std::vector<Repeat> repeats{{{3, 5}, {3, 5}},
                                  {{3, 5}, {1, 5}},
                                  {{3, 5}, {3, 1}},
                                  {{2, 3, 2, 5}, {2, 1, 1, 5}},
                                  {{2, 3, 2, 5}, {1, 3, 2, 1}},
                                  {{2, 1, 3, 2, 2, 3}, {1, 1, 3, 1, 2, 1}},
                                  {{4, 3}, {1, 1}},
                                  {{}, {}}};

List dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

OperatorCase map_case(const char* expression, std::vector<CaseOperand> operands) {
  return {"map", std::move(operands), {{"expression", std::string(expression)}}};
}

/// All functions of floats, of operands in (−1, 1).
constexpr const char* of_floats[] = {
    "a = $1 * $2; yield a / (1 + exp(-a))",
    "sqrt(2 + $1) - rsqrt(2 + $2) + expm1($1) * log1p(0.5 * $2) + log(3 - $1)",
    "yield tanh($1) + erf($2), sigmoid($1 - $2)",
    "max($1, $2) * 2 + min($1, 0.25) + abs($2) * $1 + select($1 < $2, $1 * $1, $2)",
    "fma($1, $2, floor($1 * 8.01) - round($2 * 8.01))",
};

std::vector<OperatorCase> map_cases(DType type) {
  std::vector<OperatorCase> all;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const CaseOperand large{repeats[i].whole, true, type}, small{repeats[i].part, true, type};
    all.push_back(map_case(of_floats[i % std::size(of_floats)], {large, small}));
  }
  const CaseOperand x{{3, 4, 5}, true, type};
  // Those of doubles are calls on a GPU, which nothing here runs without one.
  if (type == DType::float32)
    all.push_back(map_case("sin($1) * cos($2) + pow(2 + $1, $2)", {x, {{5}, true, type}}));
  const std::string name(to_string(type));
  all.push_back(map_case("$1 / $2 - $3", {x, {{5}, true, type, 1, 2}, {{4, 1}, true, type}}));
  all.push_back(map_case(("$1 * " + name + "(index(0) - 2 * index(2))").c_str(), {x}));
  const CaseOperand i{{3, 4, 5}, false, DType::int32, -50, 50},
      j{{4, 1}, false, DType::int64, -9, 9}, k{{5}, false, DType::uint8, 0, 255};
  all.push_back(
      map_case("yield $1 * 2, ($2 << 3) % 7 ^ int32($4), int64($2) / $3 + 5, uint8($2 * 3), "
               "max($3, -$3) & 6 | int64($2 >= 0), ~$3 >> 1",
               {x, i, j, k}));
  return all;
}

constexpr const char* of_groups[] = {
    "sum($1 * $2)",
    "e = exp($1 - max($1)); yield e / sum(e) * $2",
    "d = $1 - mean($1); v = mean(d * d); yield d * rsqrt(v + 0.1) * $2, v",
    "yield logsumexp($1 + $2), variance($1) * $2",
    "min($1) * $2 + prod(2 + $1 * 0.5)",
};

std::vector<OperatorCase> reduce_cases(DType type) {
  std::vector<OperatorCase> all;
  std::size_t number = 0;
  for (const auto& [whole, part] : repeats) {
    if (whole.rank() == 0) continue;
    const CaseOperand large{whole, true, type}, small{part, true, type};
    for (const List& axes : {List{0}, List{-1}, whole.rank() > 2 ? List{1, 2} : List{0, 1}}) {
      const char* expression = of_groups[number % std::size(of_groups)];
      const auto keep = static_cast<std::int64_t>(number++ % 2);
      all.push_back({"reduce",
                     {large, small},
                     {{"axes", axes}, {"keep", keep}, {"expression", std::string(expression)}}});
    }
  }
  return all;
}

}  // namespace

std::vector<OperatorCase> elementwise_cases() {
  std::vector<OperatorCase> all;
  for (DType type : {DType::float32, DType::float64}) {
    std::ranges::move(map_cases(type), std::back_inserter(all));
    std::ranges::move(reduce_cases(type), std::back_inserter(all));
    std::ranges::move(formula_cases(type), std::back_inserter(all));
    for (const auto& [whole, part] : repeats) {
      const CaseOperand large{whole, true, type}, small{part, true, type};
      all.push_back({"sum_to", {large}, {{"shape", dims(part)}}});
      all.push_back({"broadcast_to", {small}, {{"shape", dims(whole)}}});
      all.push_back({"add", {large, small}, {}});
      all.push_back({"mul", {large, small}, {}});
    }
  }
  return all;
}

}  // namespace arenite::reference
