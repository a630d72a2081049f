// What `simplify` of several operators is, and what it looks at: what makes an operand.
#pragma once

#include "codelets/rules.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::codelets {

using graph::Simpler;

/// The op's result is this value.
inline std::optional<Simpler> is_value(ValueId value) {
  return Simpler{.value = value, .name = {}, .operands = {}, .attributes = {}};
}
inline std::optional<Simpler> is_op(std::string name, std::vector<ValueId> operands,
                                    graph::Attributes attributes) {
  return Simpler{.value = {},
                 .name = std::move(name),
                 .operands = std::move(operands),
                 .attributes = std::move(attributes)};
}

/// The op of this name that makes operand i; none where another one does.
inline const graph::Op* made_by(const OpView& op, std::size_t i, std::string_view name) {
  const graph::OpId producer = op.has_operand(i) ? op.operand(i).producer : graph::OpId{};
  if (!producer || op.graph()[producer].name() != name) return nullptr;
  return &op.graph()[producer];
}

/// A permutation that transposes a matrix, or each of several.
bool swaps_last_two(const graph::Op& permute);

/// The number that all elements of operand i are, as its type holds it, where it is a `full`, or a
/// view of one. One with the samples of a batch counts as none: what is made of it has them too.
std::optional<double> constant(const OpView& op, std::size_t i);

/// Too small to be normal: workers take it for 0.
template <class T>
bool flushes(T number) {
  return std::fpclassify(number) == FP_SUBNORMAL;
}

/// A `full` of the result's type and shape.
std::optional<Simpler> is_full(const OpView& op, double value);

/// Operand 0, where it has the result's shape: of an op that changes nothing else.
inline std::optional<Simpler> same_shape(const OpView& op) {
  return op.operand(0).shape == op.result(0).shape ? is_value(op.op().operands[0]) : std::nullopt;
}

}  // namespace arenite::codelets
