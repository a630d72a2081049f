#include "tests/reference/operator_cases.hpp"

namespace arenite::reference {

std::vector<OperatorCase> product_cases() {
  const std::int64_t yes = 1;
  const graph::Attributes a{{"transpose_a", yes}}, b{{"transpose_b", yes}},
      both{{"transpose_a", yes}, {"transpose_b", yes}};
  const CaseOperand doubles{.shape = {4, 3}, .type = DType::float64};
  return {{"matmul", {{{3, 5}}, {{5, 4}}}, {}},       {"matmul", {{{5, 3}}, {{5, 4}}}, a},
          {"matmul", {{{6, 5}}, {{4, 5}}}, b},        {"matmul", {{{5, 3}}, {{4, 5}}}, both},
          {"matmul", {{{7}}, {{7, 50}}}, {}},         {"matmul", {{{7}}, {{5, 7}}}, b},
          {"matmul", {{{2, 3, 5}}, {{2, 5, 4}}}, {}}, {"matmul", {{{2, 5, 6}}, {{2, 4, 5}}}, both},
          {"matmul", {doubles, doubles}, b}};
}

}  // namespace arenite::reference
