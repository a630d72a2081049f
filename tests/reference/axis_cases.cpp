#include "tests/reference/operator_cases.hpp"

namespace arenite::reference {

std::vector<OperatorCase> axis_cases() {
  const auto by = [](std::vector<std::int64_t> dims) {
    return graph::Attributes{{"dims", std::move(dims)}};
  };
  using List = std::vector<std::int64_t>;
  return {{"permute", {{{}}}, by({})},
          {"permute", {{{17, 5}}}, by({1, 0})},
          {"permute", {{{2, 3, 4, 5}}}, by({0, 2, 1, 3})},
          {"permute", {{{2, 3, 4, 5}}}, by({3, 1, 0, 2})},
          {"permute", {{.shape = {2, 3, 4}, .type = DType::float64}}, by({1, 2, 0})},
          {"stack_columns", {{{3, 5}}, {{1, 5}}, {{2, 5}}}, {}},
          {"stack_columns", {{{3, 17}}, {{2, 17}}}, {{"columns", List{4, 15}}}},
          {"stack_columns", {{{3, 5}}}, {{"columns", List{0, 2}}}},
          {"join_columns", {{{3, 5}}, {{3, 1}}, {{3, 2}}}, {}},
          {"join_columns", {{{5, 17}}, {{5, 4}}}, {{"rows", List{1, 4}}}},
          {"join_columns", {{{5, 4}}}, {{"rows", List{3, 5}}}}};
}

}  // namespace arenite::reference
