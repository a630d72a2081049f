// Loops over several values at once that differ in their halos, and in the axes along which they
// are repeated.
#pragma once

#include "codelets/image.hpp"

#include <array>
#include <span>

namespace arenite::codelets {

/// How far apart the elements of a value lie, and how far into it the first one does.
struct Strides {
  std::array<std::int64_t, Shape::max_rank> axis{};
  std::int64_t first = 0;

  explicit Strides(const graph::Value& value) {
    if (value.layout.halo > 0) {
      const Image image(value);
      axis = {image.plane, image.row, image.c, 1};
      first = image.at(0, 0, 0);
      return;
    }
    std::int64_t step = 1;
    for (int i = value.shape.rank(); i-- > 0; step *= value.shape[i])
      axis[static_cast<std::size_t>(i)] = step;
  }

  /// Those of a value that is repeated along each axis of size 1.
  static Strides repeated(const graph::Value& value) {
    Strides strides(value);
    for (int i = 0; i < value.shape.rank(); ++i) {
      if (value.shape[i] == 1) strides.axis[static_cast<std::size_t>(i)] = 0;
    }
    return strides;
  }
};

/// An axis of a loop nest: its size, and how far each value goes from one index to the next.
template <std::size_t values>
struct Axis {
  std::int64_t size = 1;
  std::array<std::int64_t, values> step{};
};

/// Axes, outermost first, with as few as possible: those of size 1 are left out, and those that
/// every value goes through as if they were one become one.
template <std::size_t values>
class Nest {
 public:
  /// Next to the innermost one so far.
  void add(const Axis<values>& axis) {
    if (axis.size == 1) return;
    if (count_ > 0) {
      Axis<values>& outer = axes_[count_ - 1];
      bool is_one = true;
      for (std::size_t v = 0; v < values; ++v)
        is_one = is_one && outer.step[v] == axis.size * axis.step[v];
      if (is_one) {
        outer = {outer.size * axis.size, axis.step};
        return;
      }
    }
    axes_[count_++] = axis;
  }

  /// The innermost axis, which is one no longer, if `accept` takes it; else one of size 1.
  template <class Accept>
  Axis<values> take_innermost(Accept accept) {
    if (count_ == 0 || !accept(axes_[count_ - 1])) return {};
    return axes_[--count_];
  }

  /// The innermost one that `accept` takes, likewise.
  template <class Accept>
  Axis<values> take(Accept accept) {
    for (std::size_t i = count_; i-- > 0;) {
      if (!accept(axes_[i])) continue;
      const Axis<values> taken = axes_[i];
      for (--count_; i < count_; ++i) axes_[i] = axes_[i + 1];
      return taken;
    }
    return {};
  }

  std::span<const Axis<values>> axes() const noexcept { return {axes_.data(), count_}; }

  /// Calls f(positions), one position a value, for every combination of indices in order.
  template <class F>
  void for_each(std::array<std::int64_t, values> at, F f) const {
    for (std::size_t i = 0; i < count_; ++i) {
      if (axes_[i].size == 0) return;
    }
    std::array<std::int64_t, Shape::max_rank> index{};
    std::size_t left = 0;
    do {
      f(at);
      // The innermost index that is not at its end goes on; those within it begin again.
      for (left = count_; left > 0; --left) {
        const Axis<values>& axis = axes_[left - 1];
        const bool goes_on = ++index[left - 1] < axis.size;
        const std::int64_t steps = goes_on ? 1 : 1 - axis.size;
        for (std::size_t v = 0; v < values; ++v) at[v] += steps * axis.step[v];
        if (goes_on) break;
        index[left - 1] = 0;
      }
    } while (left > 0);
  }

 private:
  std::array<Axis<values>, Shape::max_rank> axes_{};
  std::size_t count_ = 0;
};

}  // namespace arenite::codelets
