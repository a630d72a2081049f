// The bytes that no packing of an instance can do without.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

/// What some buffers take at least, as lower_bounds() has it.
struct Live {
  std::int64_t bytes = 0;
  std::vector<std::size_t> buffers;  ///< alive together, Item::buffer of each
};

/// Of an instance whose time is a line. O(n log n) for each alignment in use.
Live max_live(const Instance& instance);

}  // namespace arenite::plan
