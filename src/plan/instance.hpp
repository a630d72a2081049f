// One space of a problem, in the form that strategies and bounds work on.
#pragma once

#include <arenite/plan/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite::plan {

struct Item {
  std::int64_t bytes = 0;  // > 0
  std::int64_t alignment = 1;
  // With a precedence these decide no conflict, but begins still agree with it: they are given, or
  // count the items before.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t fixed = -1;  // offset, or -1
  /// How long it is in the way: ticks of its lifetime, or with a precedence its conflicts.
  std::int64_t extent = 0;
  std::size_t buffer = 0;  // index in the problem
};

/// Items are in name order, so that ties broken by index are broken by name and no result depends
/// on the order of add. Buffers of 0 bytes are left out.
struct Instance {
  std::vector<Item> items;
  std::int64_t granule = 1;            // smallest alignment: peaks and bounds are multiples of it
  std::size_t words = 0;               // of a row of `ordered`; 0 when time is a line
  std::vector<std::uint64_t> ordered;  // bit j of row i: one is before the other

  bool conflict(std::size_t i, std::size_t j) const noexcept {
    if (words != 0) return (ordered[i * words + j / 64] >> (j % 64) & 1) == 0;
    return items[i].begin < items[j].end && items[j].begin < items[i].end;
  }
};

struct SpaceInstance {
  Space space;
  Instance instance;
};

/// One for each space that a buffer lives in (even of 0 bytes), ascending. The problem is valid.
std::vector<SpaceInstance> split_by_space(const Problem& problem);

}  // namespace arenite::plan
