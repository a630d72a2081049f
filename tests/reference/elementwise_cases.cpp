#include "tests/reference/operator_cases.hpp"

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

}  // namespace

std::vector<OperatorCase> elementwise_cases() {
  std::vector<OperatorCase> all;
  for (DType type : {DType::float32, DType::float64}) {
    all.push_back({"silu", {{{2, 3, 3, 5}, true, type, -3, 3}}, {}});
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
