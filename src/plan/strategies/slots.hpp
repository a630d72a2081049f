// Whole slots instead of bytes: each item takes a slot that is free, or a new one. What TVM's
// storage tokens and a linear scan's registers are.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

struct Slots {
  std::vector<std::int64_t> bytes;  ///< by slot, in the order of their making
  std::vector<std::size_t> of;      ///< by item
};

/// In time, each item takes of the slots free for it, all within `range` times its size either way,
///  1. the smallest that is large enough, of equals the one that has been free for longest;
///  2. else the largest, of equals the one freed last, which grows to the item's size.
/// O(n × slots), and with a precedence O(n²).
Slots assign_slots(const Instance& instance, std::int64_t range);

/// Like TVM's graph planner: `range` is 16. It keys its tokens by device and memory scope (here:
/// spaces are planned apart), counts a reference for each occurrence of an argument and never takes
/// back parameters and outputs (here: both show in the lifetimes).
/// Tokens lie one above the other, each as large as its largest tenant.
std::vector<std::int64_t> storage_tokens(const Instance& instance);

/// A register allocator's scan with slots for registers: any free slot will do.
std::vector<std::int64_t> linear_scan(const Instance& instance);

}  // namespace arenite::plan
