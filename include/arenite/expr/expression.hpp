// What is computed for each element of a map, as data: a graph of functions over the elements that
// the operands have at one place. It is made by a Builder or of text, and never changed.
//
// In a reduction, functions such as `sum` make one value of all elements of a group (a row, or
// whatever lies along the axes that are reduced), which others may read for each element again.
//
// An expression has one form whatever way it was built: nodes lie in the order in which the results
// reach them, equal ones exist once, and what commutes is in one order. So `==` compares what is
// computed, and so does `hash`.
//
// Numbers: float32 and float64 are rounded to the nearest after each function, and products and
// sums are fused only where `fma` says so. Integers wrap around; a division by 0 gives 0. Casts to
// integers cut off the fraction and saturate, of NaN they give 0.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace arenite::expr {

/// uint8 is only stored: it is cast to another type before anything is computed.
enum class Type : std::uint8_t { boolean, uint8, int32, int64, float32, float64 };

std::string_view to_string(Type type) noexcept;
int size_of(Type type) noexcept;  ///< bytes of one value in memory

constexpr bool is_float(Type type) noexcept { return type >= Type::float32; }
constexpr bool is_integer(Type type) noexcept { return type == Type::int32 || type == Type::int64; }

enum class Function : std::uint8_t {
  // Of nothing
  operand,   ///< its element at this place
  constant,  ///
  index,     ///< int64: the place along an axis of the operands' joint shape
  // Of one value
  cast,  ///< to the node's type
  negate,
  abs,
  floor,
  round,  ///< to the nearest, ties to even
  sqrt,
  rsqrt,  ///< 1 / sqrt(x), both rounded
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tanh,
  erf,
  sigmoid,
  bfloat16,  ///< float32 rounded to what a bfloat16 holds, ties to even
  invert,    ///< each bit; of a boolean: not
  // Of two values
  add,
  subtract,
  multiply,
  divide,
  remainder,  ///< of integers, with the sign of the first
  min,        ///< NaN if either is NaN, and −0 below 0: IEEE 754-2019's minimum
  max,
  pow,
  equal,  ///< these make a boolean
  not_equal,
  less,
  less_equal,
  bit_and,  ///< of integers or booleans
  bit_or,
  bit_xor,
  shift_left,   ///< of integers, by the second modulo the type's bits
  shift_right,  ///< the sign's bit comes in
  philox,       ///< 32 random bits, of a counter and a key: Philox4x32-10 (see meaning.hpp)
  uniform,      ///< float32: the same as a number from 0 to below 1, in steps of 2⁻²⁴
  // Of three values
  fma,     ///< a · b + c, rounded once
  select,  ///< the second where the first is true, else the third
  // Of one value at all places of a group
  sum,
  product,
  least,           ///< NaN if one is; of booleans: whether all are true
  greatest,        ///< of booleans: whether any is
  first_least,     ///< int64: the first place that has the least, a NaN being less and greater
  first_greatest,  ///< than all, in row-major order of the group
  // Of nothing
  count,  ///< int64: a group's elements
};

/// Of those that make one element of one.
inline constexpr std::size_t function_count = static_cast<std::size_t>(Function::select) + 1;

constexpr bool is_reduction(Function function) noexcept {
  return function >= Function::sum && function <= Function::first_greatest;
}

using NodeId = std::uint32_t;

struct Node {
  Function function = Function::constant;
  Type type = Type::float32;
  /// Nodes before this one; as many as the function has.
  std::array<NodeId, 3> sources{};
  /// An operand's number, an axis (0: the first), or the constant: as its type's bits,
  /// behind zeros.
  std::uint64_t payload = 0;

  friend bool operator==(const Node&, const Node&) = default;
};

/// How many sources a function has.
int arity(Function function) noexcept;
std::span<const NodeId> sources_of(const Node& node) noexcept;

class Expression {
 public:
  /// Sources lie before those that read them; every node is one that a result needs.
  /// Not of one that is gone at the end of a range-for's head; nor is what follows.
  std::span<const Node> nodes() const& noexcept { return nodes_; }
  std::span<const Node> nodes() const&& = delete;
  const Node& operator[](NodeId node) const noexcept { return nodes_[node]; }
  /// At least one.
  std::span<const NodeId> results() const& noexcept { return results_; }
  std::span<const NodeId> results() const&& = delete;
  Type result_type(std::size_t i) const noexcept { return nodes_[results_[i]].type; }
  /// Types by operand, all of which some result needs.
  std::span<const Type> operands() const& noexcept { return operands_; }
  std::span<const Type> operands() const&& = delete;

  /// By node: whether it may differ from one element of a group to the next, as operands may.
  std::vector<bool> varying() const;
  /// Whether it knows of groups.
  bool reduces() const noexcept;

  /// Equal for equal expressions, in every process.
  std::uint64_t hash() const noexcept;

  friend bool operator==(const Expression&, const Expression&) = default;

 private:
  friend class Builder;

  std::vector<Node> nodes_;
  std::vector<NodeId> results_;
  std::vector<Type> operands_;
};

}  // namespace arenite::expr
