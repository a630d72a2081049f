// index_sum(a int64 [1], b int64 [1] or none, scale=1, offset=0) -> y int64 [1]: a + scale · b +
// offset, for the indices of dynamic_slice and its like. Integers wrap around; none has a gradient.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {

std::vector<Kernel> index_sum_kernels();

namespace {

Results infer(const OpView& op) {
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (!op.has_operand(i)) continue;
    expect_value(op, i, DType::int64, {1}, "one index");
  }
  return {{DType::int64, {1}}};
}

}  // namespace

void register_index_sum(Registry& registry) {
  registry.add({.name = "index_sum",
                .operands = {{"a"}, {.name = "b", .optional = true}},
                .results = {"y"},
                .attributes = {{"scale", graph::AttributeType::integer, std::int64_t{1}},
                               {"offset", graph::AttributeType::integer, std::int64_t{0}}},
                .infer = infer,
                .in_place = {{0, 0}}},
               index_sum_kernels());
}

}  // namespace arenite::codelets
