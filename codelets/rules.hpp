// What definitions share beside graph/rules.hpp: checks of shape rules, each of which throws Error
// naming the operand and what it met; whole rules; and what ops cost.
#pragma once

#include <arenite/error.hpp>
#include <arenite/graph/rules.hpp>

#include "codelets/words.hpp"
#include "src/base/element.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace arenite::codelets {

using graph::all_rows;
using graph::gradient_of_first;
using graph::like_first;
using graph::rows_of_all;
using graph::rows_of_first;
using graph::rows_of_pair;
using graph::with_rows;

/// "operand 'weight' (fc1.weight)"
inline std::string operand_text(const OpView& op, std::size_t i) {
  return "operand '" + op.op().definition->operand_schema(i).name + "' (" + op.operand(i).name +
         ")";
}

inline void expect_type(const OpView& op, std::size_t i, DType type) {
  const DType found = op.operand(i).type;
  if (found == type) return;
  fail({.found = operand_text(op, i) + " of type " + std::string(to_string(found)),
        .expected = std::string(to_string(type))});
}

/// What codes that kernels report mean.
using FaultTexts = std::vector<std::pair<std::uint32_t, std::string>>;

/// An OperatorDefinition::fault.
inline auto faults(FaultTexts texts) {
  return [texts = std::move(texts)](const OpView&, std::uint32_t code,
                                    std::span<const void* const>) -> ErrorText {
    const auto known =
        std::ranges::find(texts, code, &std::pair<std::uint32_t, std::string>::first);
    return {.found = known == texts.end() ? "status code " + std::to_string(code) : known->second,
            .expected = "data within the op's limits"};
  };
}

/// An operand that is only multiplied, by another factor.
inline graph::OperandSchema factor(std::string name) {
  return {.name = std::move(name), .factor = true};
}

inline void expect_real(const OpView& op, std::size_t i) {
  const DType found = op.operand(i).type;
  if (is_real(found)) return;
  fail({.found = operand_text(op, i) + " of type " + std::string(to_string(found)),
        .expected = "float32 or float64"});
}

/// `letters` names the axes: "[N, C]".
inline void expect_rank(const OpView& op, std::size_t i, int rank, const std::string& letters) {
  const Shape& found = op.operand(i).shape;
  if (found.rank() == rank) return;
  fail({.found = operand_text(op, i) + " of shape " + to_string(found),
        .expected = "rank " + std::to_string(rank) + ", " + letters});
}

/// The same of an operand with any axes, but not none.
inline void expect_axes(const OpView& op, std::size_t i, const std::string& letters) {
  if (op.operand(i).shape.rank() > 0) return;
  fail({.found = operand_text(op, i) + " of shape []", .expected = "rank 1 or more, " + letters});
}

/// `why` says where the expected shape comes from.
inline void expect_shape(const OpView& op, std::size_t i, const Shape& shape,
                         const std::string& why) {
  const Shape& found = op.operand(i).shape;
  if (found == shape) return;
  fail({.found = operand_text(op, i) + " of shape " + to_string(found),
        .expected = to_string(shape) + ", " + why});
}

/// The same, and the type.
inline void expect_value(const OpView& op, std::size_t i, DType type, const Shape& shape,
                         const std::string& why) {
  expect_type(op, i, type);
  expect_shape(op, i, shape, why);
}

/// Type and shape of an operand that mirrors another one.
inline void expect_like(const OpView& op, std::size_t i, std::size_t model) {
  expect_value(op, i, op.operand(model).type, op.operand(model).shape,
               "the shape of '" + op.op().definition->operand_schema(model).name + "'");
}

/// An attribute that is an integer for want of a truth value.
inline void expect_flag(const OpView& op, const std::string& name) {
  const std::int64_t value = op.integer(name);
  if (value != 0 && value != 1)
    fail({.found = name + "=" + std::to_string(value), .expected = "0 or 1"});
}
inline bool flag(const OpView& op, const std::string& name) {
  expect_flag(op, name);
  return op.integer(name) == 1;
}

/// A shape as the attributes of ops have it.
inline std::vector<std::int64_t> dims_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

/// Bytes of all operands and results, read or written once each.
inline double bytes_touched(const OpView& op) {
  const auto bytes = [](const graph::Value& value) {
    return static_cast<double>(graph::byte_size(value.type, value.shape));
  };
  double sum = 0;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (op.has_operand(i)) sum += bytes(op.operand(i));
  }
  for (std::size_t i = 0; i < op.op().results.size(); ++i) sum += bytes(op.result(i));
  return sum;
}

/// So many operations for each element of operand 0.
template <int flops>
graph::Cost cost_each(const OpView& op) {
  return {.flops = flops * static_cast<double>(op.operand(0).shape.elements()),
          .bytes = bytes_touched(op)};
}

}  // namespace arenite::codelets
