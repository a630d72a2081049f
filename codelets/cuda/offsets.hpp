// Where the elements of a value lie, by one index: permuting, and sums over some axes.
#pragma once

#include "codelets/cuda/grid.hpp"

namespace arenite::codelets::cuda {

/// Axes of a value, outermost first.
struct Offsets {
  int axes = 0;
  std::int64_t size[Shape::max_rank]{}, step[Shape::max_rank]{};

  /// Next to the innermost axis so far; none of size 1, and one that is gone through as if it were
  /// one with the axis around it becomes part of that.
  void add(std::int64_t length, std::int64_t apart) {
    if (length == 1) return;
    if (axes > 0 && step[axes - 1] == length * apart) {
      size[axes - 1] *= length;
    } else {
      size[axes++] = length;
    }
    step[axes - 1] = apart;
  }

  std::int64_t count() const {
    std::int64_t all = 1;
    for (int axis = 0; axis < axes; ++axis) all *= size[axis];
    return all;
  }

  /// The element that index i, row-major over the axes, stands for.
  ARENITE_GPU std::int64_t at(std::int64_t i) const {
    if (axes == 0) return 0;
    std::int64_t found = 0;
    for (int axis = axes; axis-- > 1;) {
      found += i % size[axis] * step[axis];
      i /= size[axis];
    }
    return found + i * step[0];
  }
};

}  // namespace arenite::codelets::cuda
