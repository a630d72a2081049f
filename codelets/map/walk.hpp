// The order in which a map's tiles are done, and how its operands and results lie in one.
//
// A tile is a run of elements of the results in row-major order: part of a row, where rows are
// long, else some whole rows. A row is as much of the innermost axes as every value goes through in
// steps of one element, or of none.
#pragma once

#include "codelets/strides.hpp"
#include "src/expr/code.hpp"

#include <vector>

namespace arenite::codelets {

/// How a value's elements come into a tile, and results out of it.
enum class Access : std::uint8_t {
  direct,    ///< where they lie
  scalar,    ///< one for all
  of_row,    ///< one for the row that the tile is a part of
  by_row,    ///< copied, or repeated, row by row
  periodic,  ///< the same row again and again
};

inline std::vector<const graph::Value*> operands_of(const OpView& op) {
  std::vector<const graph::Value*> values;
  for (std::size_t i = 0; i < op.operand_count(); ++i) values.push_back(&op.operand(i));
  return values;
}

inline std::vector<const graph::Value*> results_of(const OpView& op) {
  std::vector<const graph::Value*> values;
  for (std::size_t i = 0; i < op.op().results.size(); ++i) values.push_back(&op.result(i));
  return values;
}

/// An axis that several values go through together.
struct JointAxis {
  std::int64_t size = 1;
  std::vector<std::int64_t> step;  ///< elements, by value
};

/// A value's steps along the axes of a shape of that rank or a larger one.
inline std::vector<std::int64_t> steps_along(const graph::Value& value, const Shape& whole) {
  const Strides strides = Strides::repeated(value);
  const int missing = whole.rank() - value.shape.rank();
  std::vector<std::int64_t> steps(static_cast<std::size_t>(whole.rank()), 0);
  for (int i = 0; i < value.shape.rank(); ++i)
    steps[static_cast<std::size_t>(i + missing)] = strides.axis[static_cast<std::size_t>(i)];
  return steps;
}

/// As few axes of a shape as possible, outermost first: those that every value goes through as if
/// they were one become one. Values are repeated along axes where their size is 1.
inline std::vector<JointAxis> joint_axes(const std::vector<const graph::Value*>& values,
                                         const Shape& whole) {
  std::vector<std::vector<std::int64_t>> steps;
  for (const graph::Value* value : values) steps.push_back(steps_along(*value, whole));
  std::vector<JointAxis> axes;
  for (int i = 0; i < whole.rank(); ++i) {
    JointAxis axis{.size = whole[i], .step = {}};
    if (axis.size == 1) continue;
    for (const auto& one : steps) axis.step.push_back(one[static_cast<std::size_t>(i)]);
    bool is_one = !axes.empty();
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

  std::vector<Axis> outer;  ///< outermost first
  Axis rows, row;           ///< the two innermost ones
  std::int64_t rows_in_tile = 1;
  std::vector<std::int64_t> first;  ///< by value: elements before its first one
  std::vector<Access> access;       ///< by value

  /// Operands, which are repeated along axes where their size is 1, then results.
  Walk(const std::vector<const graph::Value*>& operands,
       const std::vector<const graph::Value*>& results);

 private:
  Access access_of(std::size_t value) const;
};

inline Walk::Walk(const std::vector<const graph::Value*>& operands,
                  const std::vector<const graph::Value*>& results) {
  std::vector<const graph::Value*> values = operands;
  values.insert(values.end(), results.begin(), results.end());
  row.step.assign(values.size(), 0);
  rows.step.assign(values.size(), 0);
  for (const graph::Value* value : values) first.push_back(Strides(*value).first);
  outer = joint_axes(values, results.front()->shape);
  const auto take = [&](Axis& into) {
    if (outer.empty()) return;
    into = std::move(outer.back());
    outer.pop_back();
  };
  // Past a halo, elements of an axis of images one pixel wide are further apart.
  const auto is_row = [](const Axis& axis) {
    return std::ranges::all_of(axis.step, [](std::int64_t step) { return step <= 1; });
  };
  if (!outer.empty() && is_row(outer.back())) take(row);
  constexpr auto tile = static_cast<std::int64_t>(expr::tile_elements);
  if (row.size * 2 <= tile && !outer.empty()) {
    take(rows);
    rows_in_tile =
        std::max<std::int64_t>(1, std::min(rows.size, tile / std::max<std::int64_t>(1, row.size)));
  }
  for (std::size_t v = 0; v < values.size(); ++v) {
    const bool is_one_element =
        v >= operands.size() && row.size == 1 && outer.empty() && rows_in_tile == 1;
    access.push_back(is_one_element ? Access::direct : access_of(v));
  }
}

inline Access Walk::access_of(std::size_t value) const {
  const auto step = [&](const Axis& axis) { return axis.step[value]; };
  const bool is_fixed = step(row) == 0 && step(rows) == 0;
  if (is_fixed && std::ranges::all_of(outer, [&](const Axis& axis) { return step(axis) == 0; }))
    return Access::scalar;
  if (rows_in_tile == 1) return step(row) == 0 ? Access::of_row : Access::direct;
  if (step(row) == 1 && step(rows) == row.size) return Access::direct;
  return step(row) == 1 && step(rows) == 0 ? Access::periodic : Access::by_row;
}

}  // namespace arenite::codelets
