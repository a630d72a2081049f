// Checks that shape rules share. Each throws Error naming the operand and what it met.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>

#include <string>
#include <utility>

namespace arenite::codelets {

/// "operand 'weight' (fc1.weight)"
inline std::string operand_text(const graph::OpView& op, std::size_t i) {
  return "operand '" + op.op().definition->operand_schema(i).name + "' (" + op.operand(i).name +
         ")";
}

inline void expect_type(const graph::OpView& op, std::size_t i, DType type) {
  const DType found = op.operand(i).type;
  if (found == type) return;
  fail({.found = operand_text(op, i) + " of type " + std::string(to_string(found)),
        .expected = std::string(to_string(type))});
}

/// An operand that is only multiplied, by another factor.
inline graph::OperandSchema factor(std::string name) {
  return {.name = std::move(name), .factor = true};
}

/// Integers have no gradient.
inline bool is_real(DType type) noexcept {
  return type == DType::float32 || type == DType::float64;
}

inline void expect_real(const graph::OpView& op, std::size_t i) {
  const DType found = op.operand(i).type;
  if (is_real(found)) return;
  fail({.found = operand_text(op, i) + " of type " + std::string(to_string(found)),
        .expected = "float32 or float64"});
}

/// `letters` names the axes: "[N, C]".
inline void expect_rank(const graph::OpView& op, std::size_t i, int rank,
                        const std::string& letters) {
  const Shape& found = op.operand(i).shape;
  if (found.rank() == rank) return;
  fail({.found = operand_text(op, i) + " of shape " + to_string(found),
        .expected = "rank " + std::to_string(rank) + ", " + letters});
}

/// `why` says where the expected shape comes from.
inline void expect_shape(const graph::OpView& op, std::size_t i, const Shape& shape,
                         const std::string& why) {
  const Shape& found = op.operand(i).shape;
  if (found == shape) return;
  fail({.found = operand_text(op, i) + " of shape " + to_string(found),
        .expected = to_string(shape) + ", " + why});
}

/// Type and shape of an operand that mirrors another one.
inline void expect_like(const graph::OpView& op, std::size_t i, std::size_t model) {
  expect_type(op, i, op.operand(model).type);
  expect_shape(op, i, op.operand(model).shape,
               "the shape of '" + op.op().definition->operand_schema(model).name + "'");
}

}  // namespace arenite::codelets
