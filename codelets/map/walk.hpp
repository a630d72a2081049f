// The order in which tiles are done, and how an op's operands and results lie in one.
//
// A tile is a run of elements in row-major order: part of a row, where rows are long, else some
// whole rows. A row is as much of the innermost axes as every value goes through in steps of one
// element, or of none.
//
// A reduction goes through its groups one after the other. Where their elements are many and lie in
// a row, a tile is of one group. Else as many groups as fit into a row lie side by side, and the
// elements of each are one below the other. A group's shape alone decides, so that some of the
// groups have the same bits as all.
#pragma once

#include "codelets/strides.hpp"
#include "src/expr/code.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace arenite::codelets {

/// How a value's elements come into a tile, and results out of it.
enum class Access : std::uint8_t {
  direct,    ///< where they lie
  scalar,    ///< one for all
  of_group,  ///< one for each group
  of_row,    ///< one for the row that the tile is a part of
  by_row,    ///< copied, or repeated, row by row
  periodic,  ///< the same row again and again
};

/// An axis that several values go through together.
struct JointAxis {
  std::int64_t size = 1;
  std::vector<std::int64_t> step;  ///< elements, by value
  bool is_reduced = false;
};

/// What is gone through: all of a shape, of which some axes may be reduced.
struct Space {
  Shape whole;
  std::vector<bool> reduced;  ///< by axis; empty: none

  /// A group's elements.
  std::int64_t group() const {
    std::int64_t count = 1;
    for (int axis = 0; axis < whole.rank(); ++axis) count *= reduces(axis) ? whole[axis] : 1;
    return count;
  }
  bool reduces(int axis) const {
    return !reduced.empty() && reduced[static_cast<std::size_t>(axis)];
  }
};

/// A value as an op sees it.
struct Seen {
  const graph::Value* value;
  /// It has one element for each group, and no axes of its own for those that are reduced.
  bool lacks_reduced = false;
};

/// Its steps along the axes of a space. It may lack the first ones, and is repeated along those
/// where its size is 1.
inline std::vector<std::int64_t> steps_along(const Seen& seen, const Space& space) {
  const Strides strides = Strides::repeated(*seen.value);
  std::vector<std::int64_t> steps(static_cast<std::size_t>(space.whole.rank()), 0);
  int own = seen.value->shape.rank();
  for (int axis = space.whole.rank(); axis-- > 0;) {
    if (own == 0 || (seen.lacks_reduced && space.reduces(axis))) continue;
    steps[static_cast<std::size_t>(axis)] = strides.axis[static_cast<std::size_t>(--own)];
  }
  return steps;
}

/// As few axes of a space as possible, outermost first: those that every value goes through as if
/// they were one become one, unless only one of them is reduced.
inline std::vector<JointAxis> joint_axes(const std::vector<Seen>& values, const Space& space) {
  std::vector<std::vector<std::int64_t>> steps;
  for (const Seen& value : values) steps.push_back(steps_along(value, space));
  std::vector<JointAxis> axes;
  for (int i = 0; i < space.whole.rank(); ++i) {
    JointAxis axis{.size = space.whole[i], .step = {}, .is_reduced = space.reduces(i)};
    if (axis.size == 1) continue;
    for (const auto& one : steps) axis.step.push_back(one[static_cast<std::size_t>(i)]);
    bool is_one = !axes.empty() && axes.back().is_reduced == axis.is_reduced;
    for (std::size_t v = 0; is_one && v < values.size(); ++v)
      is_one = axes.back().step[v] == axis.size * axis.step[v];
    if (is_one) {
      axis.size *= axes.back().size;
      axes.back() = std::move(axis);
    } else {
      axes.push_back(std::move(axis));
    }
  }
  return axes;
}

struct Walk {
  using Axis = JointAxis;

  std::vector<Axis> groups;  ///< outermost first; none where nothing is reduced
  std::vector<Axis> outer;   ///< of a group, or of all
  Axis rows, row;            ///< the two innermost ones
  std::int64_t rows_in_tile = 1;
  expr::Groups lie = expr::Groups::rows;
  /// Of groups side by side that are too many for a row: those of one after the other. Else 0.
  std::int64_t all_in_row = 0;
  std::vector<std::int64_t> first;  ///< by value: elements before its first one
  std::vector<Access> access;       ///< by value

  /// Operands first, then results.
  Walk(const std::vector<Seen>& values, std::size_t operands, const Space& space);

  bool has_columns() const noexcept { return lie == expr::Groups::columns; }
  /// Of a group, or of all; of groups side by side, of all these.
  std::int64_t elements() const noexcept;
  /// Whether a value's elements are copied to a row, or from it.
  bool is_copied(std::size_t value) const noexcept {
    return access[value] == Access::by_row || access[value] == Access::periodic;
  }

 private:
  void part(std::vector<Axis> axes, std::int64_t group);
  Access access_of(std::size_t value) const;
};

/// Which axes are groups', and which their elements'.
inline void Walk::part(std::vector<Axis> axes, std::int64_t group) {
  const auto is_reduced = [](const Axis& axis) { return axis.is_reduced; };
  constexpr std::int64_t long_row = 64;
  const auto tile = static_cast<std::int64_t>(expr::tile_elements);
  const auto kept = std::ranges::find_if_not(axes.rbegin(), axes.rend(), is_reduced);
  const bool is_inside = kept == axes.rbegin();  // elements of a group lie apart
  const bool side_by_side = kept != axes.rend() && (is_inside || group < long_row);
  std::optional<Axis> columns;
  if (side_by_side) {
    lie = expr::Groups::columns;
    columns = *kept;
    axes.erase(std::next(kept).base());
    if (columns->size > tile) {
      all_in_row = columns->size;
      Axis strips = *columns;
      strips.size = (all_in_row + tile - 1) / tile;
      for (std::int64_t& step : strips.step) step *= tile;
      groups.push_back(std::move(strips));  // the innermost, below
      columns->size = tile;
    }
  }
  for (Axis& axis : axes) (axis.is_reduced ? outer : groups).push_back(std::move(axis));
  if (all_in_row > 0) std::rotate(groups.begin(), groups.begin() + 1, groups.end());
  if (columns) outer.push_back(std::move(*columns));
}

inline Walk::Walk(const std::vector<Seen>& values, std::size_t operands, const Space& space) {
  row.step.assign(values.size(), 0);
  rows.step.assign(values.size(), 0);
  for (const Seen& seen : values) first.push_back(Strides(*seen.value).first);
  if (space.reduced.empty()) {
    outer = joint_axes(values, space);
  } else {
    part(joint_axes(values, space), space.group());
  }
  const auto take = [&](Axis& into) {
    if (outer.empty()) return;
    into = std::move(outer.back());
    outer.pop_back();
  };
  // Past a halo, elements of an axis of images one pixel wide are further apart.
  const auto is_row = [](const Axis& axis) {
    return std::ranges::all_of(axis.step, [](std::int64_t step) { return step <= 1; });
  };
  if (!outer.empty() && (has_columns() || is_row(outer.back()))) take(row);
  constexpr auto tile = static_cast<std::int64_t>(expr::tile_elements);
  if (row.size * 2 <= tile && !outer.empty()) {
    take(rows);
    rows_in_tile =
        std::max<std::int64_t>(1, std::min(rows.size, tile / std::max<std::int64_t>(1, row.size)));
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    const bool is_one_element = v >= operands && row.size == 1 && outer.empty() &&
                                rows_in_tile == 1 && groups.empty() && space.reduced.empty();
    access.push_back(is_one_element ? Access::direct : access_of(v));
    // The only group's.
    if (v >= operands && access[v] == Access::scalar) access[v] = Access::of_group;
  }
}

inline std::int64_t Walk::elements() const noexcept {
  std::int64_t count = rows.size * row.size;
  for (const Axis& axis : outer) count *= axis.size;
  return count;
}

inline Access Walk::access_of(std::size_t value) const {
  const auto step = [&](const Axis& axis) { return axis.step[value]; };
  const auto stays = [&](const std::vector<Axis>& axes) {
    return std::ranges::all_of(axes, [&](const Axis& axis) { return step(axis) == 0; });
  };
  const bool is_for_group = step(rows) == 0 && stays(outer);
  if (is_for_group && step(row) == 0 && stays(groups)) return Access::scalar;
  if (is_for_group && (has_columns() || (step(row) == 0 && !groups.empty())))
    return Access::of_group;
  if (step(row) > 1) return Access::by_row;
  // Where groups lie side by side, no splat may meet what is one for each of them.
  if (rows_in_tile == 1 && step(row) == 0) return has_columns() ? Access::by_row : Access::of_row;
  if (rows_in_tile == 1) return Access::direct;
  if (step(row) == 1 && step(rows) == row.size) return Access::direct;
  return step(row) == 1 && step(rows) == 0 ? Access::periodic : Access::by_row;
}

}  // namespace arenite::codelets
