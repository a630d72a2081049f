// index_sum(a int64 [1], b int64 [1] or none, scale=1, offset=0) -> y int64 [1]: a + scale · b +
// offset, for the indices of dynamic_slice and its like. Integers wrap around; none has a gradient.
#include "codelets/registry.hpp"
#include "codelets/rules.hpp"
#include "codelets/simpler.hpp"

#include <cmath>

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

/// Of constants, as far as `full` can say their sum; of nothing else.
std::optional<Simpler> simplify(const OpView& op) {
  const bool one = !op.has_operand(1);
  if (one && op.integer("offset") == 0) return is_value(op.op().operands[0]);
  const auto a = constant(op, 0), b = one ? 0.0 : constant(op, 1);
  if (!a || !b) return std::nullopt;
  constexpr double limit = 4503599627370496;  // 2^52: sums below are exact as doubles
  const double term = static_cast<double>(op.integer("scale")) * *b,
               sum = *a + term + static_cast<double>(op.integer("offset"));
  const bool exact = std::abs(*a) < limit && std::abs(term) < limit && std::abs(sum) < limit &&
                     std::abs(static_cast<double>(op.integer("offset"))) < limit;
  return exact ? is_full(op, sum) : std::nullopt;
}

}  // namespace

void register_index_sum(Registry& registry) {
  registry.add({.name = "index_sum",
                .operands = {{"a"}, {.name = "b", .optional = true}},
                .results = {"y"},
                .attributes = {{"scale", graph::AttributeType::integer, std::int64_t{1}},
                               {"offset", graph::AttributeType::integer, std::int64_t{0}}},
                .infer = infer,
                .in_place = {{0, 0}},
                .simplify = simplify},
               index_sum_kernels());
}

}  // namespace arenite::codelets
