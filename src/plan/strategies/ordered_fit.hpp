// Placing one item after another, each in a gap that takes it; and the orders for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

/// Items by index, each once.
using ItemOrder = std::vector<std::size_t>;

enum class Gap {
  lowest,      ///< first fit
  tightest,    ///< best fit: the smallest below something that is in the way, else on top
  free_block,  ///< the same for an allocator, to whom the room below the highest end so far is one
               ///< block more
};

/// Offsets by item. Fixed items are where they are, before all others. O(n²), and in an order of
/// ascending begins on a line O(n × what is alive together).
std::vector<std::int64_t> fit_in_order(const Instance& instance, const ItemOrder& order, Gap gap);

// Ties are broken by index, which is by name. The first four descend.
ItemOrder by_size(const Instance& instance);
ItemOrder by_area(const Instance& instance);    ///< size times extent
ItemOrder by_extent(const Instance& instance);  ///< then by size
/// By the number of items that each conflicts with, then by size.
ItemOrder by_conflicts(const Instance& instance);
/// As a program would allocate them: by begin, and where there are no times in an order that agrees
/// with the precedence.
ItemOrder in_time(const Instance& instance);

/// One above the other, without any reuse; in time.
std::vector<std::int64_t> bump(const Instance& instance);

}  // namespace arenite::plan
