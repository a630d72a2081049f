// One element at a time, plainly: what folds constants, and what tests compare machines with.
#pragma once

#include <arenite/expr/expression.hpp>

#include <bit>
#include <cstring>
#include <vector>

namespace arenite::expr {

/// A value as a node's payload has it: its type's bits behind zeros.
template <class T>
std::uint64_t payload_of(T value) noexcept {
  std::uint64_t payload = 0;
  std::memcpy(&payload, &value, sizeof value);  // x86-64 and ARM: the lowest byte comes first
  return payload;
}
template <class T>
T value_of(std::uint64_t payload) noexcept {
  T value;
  std::memcpy(&value, &payload, sizeof value);
  return value;
}

/// Calls f with a zero of the C++ type of such values.
template <class F>
decltype(auto) with_value(Type type, F f) {
  switch (type) {
    case Type::boolean:
      return f(false);
    case Type::uint8:
      return f(std::uint8_t{});
    case Type::int32:
      return f(std::int32_t{});
    case Type::int64:
      return f(std::int64_t{});
    case Type::float32:
      return f(float{});
    case Type::float64:
      break;
  }
  return f(double{});
}

/// What a cast makes of a payload.
std::uint64_t cast_payload(std::uint64_t from, Type from_type, Type to) noexcept;

/// What a node makes of its sources' payloads; `source_type` is that of the first (of a select: of
/// the second). Functions that are not exact are computed in long double, and rounded.
std::uint64_t apply_scalar(const Node& node, Type source_type,
                           std::span<const std::uint64_t> sources) noexcept;

/// The payloads of an expression's results for one element; `indices` holds its place by axis.
std::vector<std::uint64_t> evaluate(const Expression& expression,
                                    std::span<const std::uint64_t> operands,
                                    std::span<const std::int64_t> indices = {});

/// What a reduction makes of the payloads of a group's elements, of a type; of none, where it needs
/// one, anything.
std::uint64_t reduce_scalar(Function function, Type type,
                            std::span<const std::uint64_t> elements) noexcept;

/// The same of all elements of a group, by element, in row-major order; what is one for the group
/// is there for each. Sums are taken in long double, or wrap around.
std::vector<std::vector<std::uint64_t>> evaluate_group(
    const Expression& expression, std::span<const std::vector<std::uint64_t>> operands,
    std::span<const std::vector<std::int64_t>> indices = {});

}  // namespace arenite::expr
