// Totals of a group's elements, gathered tile by tile in an order that the shape alone decides.
//
// Where a tile is of one group, its elements go to `fold_lanes` totals in turn, which are put
// together in a tree; where groups lie side by side, to one or four for each in turn, which are put
// together from the first to the last. Sums and products of floats are taken in
// double.
#pragma once

#include <arenite/expr/expression.hpp>

#include <cstddef>
#include <cstdint>

namespace arenite::expr {

inline constexpr std::size_t fold_lanes = 16;

/// Bytes of the totals of so many places.
std::size_t fold_bytes(Function function, std::size_t places) noexcept;

struct FoldLoops {
  /// Makes them those of no element.
  void (*begin)(void* totals, std::size_t places);
  /// Adds element i to place `first` · `row` + i, modulo `places`. It is number `first` + i / `row`
  /// of its group.
  void (*add)(void* totals, std::size_t places, const void* elements, std::size_t count,
              std::int64_t first, std::int64_t row);
  /// Puts totals that are `count` apart together: so many are left. One of `fold_lanes` in a tree.
  void (*join)(void* totals, std::size_t places, std::size_t count);
  /// The values of so many totals.
  void (*end)(const void* totals, std::size_t count, void* values);
};

/// Of values of a type, which are as a tile has them: booleans are masks of 32 bits. Throws Error
/// like apply_isa().
const FoldLoops& fold_loops(Function function, Type type);

}  // namespace arenite::expr
