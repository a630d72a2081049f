// Where the elements of several values lie, by one index: broadcasting, permuting, slicing.
#pragma once

#include "codelets/cuda/grid.hpp"
#include "codelets/strides.hpp"

namespace arenite::codelets::cuda {

/// Axes, outermost first, that `values` values go through together.
template <int values>
struct Offsets {
  int axes = 0;
  std::int64_t size[Shape::max_rank]{};
  std::int64_t step[values][Shape::max_rank]{};

  /// Next to the innermost axis so far; none of size 1, and one that all values go through as if it
  /// were one with the axis around it becomes part of that.
  void add(std::int64_t length, const std::array<std::int64_t, values>& steps) {
    if (length == 1) return;
    bool joins = axes > 0;
    for (std::size_t v = 0; v < values; ++v)
      joins = joins && step[v][axes - 1] == length * steps[v];
    if (joins) {
      size[axes - 1] *= length;
    } else {
      size[axes++] = length;
    }
    for (std::size_t v = 0; v < values; ++v) step[v][axes - 1] = steps[v];
  }

  std::int64_t count() const {
    std::int64_t all = 1;
    for (int axis = 0; axis < axes; ++axis) all *= size[axis];
    return all;
  }

  struct At {
    std::int64_t of[values];
  };

  /// The elements that index i, row-major over the axes, stands for.
  ARENITE_GPU At at(std::int64_t i) const {
    At found{};
    if (axes == 0) return found;
    for (int axis = axes; axis-- > 1;) {
      const std::int64_t index = i % size[axis];
      i /= size[axis];
      for (int v = 0; v < values; ++v) found.of[v] += index * step[v][axis];
    }
    for (int v = 0; v < values; ++v) found.of[v] += i * step[v][0];
    return found;
  }
};

}  // namespace arenite::codelets::cuda
