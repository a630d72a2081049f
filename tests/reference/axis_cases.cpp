#include "tests/reference/operator_cases.hpp"

namespace arenite::reference {

std::vector<OperatorCase> axis_cases() {
  const auto by = [](std::vector<std::int64_t> dims) {
    return graph::Attributes{{"dims", std::move(dims)}};
  };
  return {{"permute", {{{}}}, by({})},
          {"permute", {{{17, 5}}}, by({1, 0})},
          {"permute", {{{2, 3, 4, 5}}}, by({0, 2, 1, 3})},
          {"permute", {{{2, 3, 4, 5}}}, by({3, 1, 0, 2})},
          {"permute", {{.shape = {2, 3, 4}, .type = DType::float64}}, by({1, 2, 0})}};
}

}  // namespace arenite::reference
