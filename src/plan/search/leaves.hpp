// What of an instance can be packed by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

/// A part of an instance whose items conflict with nothing else but items that lie below it.
struct Leaf {
  Instance instance;             // Item::buffer is the index in the whole instance
  std::int64_t base = 0;         // its offset 0 in the whole
  std::int64_t lower_bound = 0;  // of its own peak, without the base
};

struct Leaves {
  std::vector<Leaf> leaves;
  std::vector<std::int64_t> offsets;  // of the items that are in no leaf; -1 for the others
};

/// Splits into parts that conflict with nothing outside, and takes from each the items that
/// conflict with all of the part: they lie at its bottom, where they cost exactly their bytes.
/// What remains may split again. Where time is a line only: with a precedence, and where items have
/// fixed offsets, the whole is one leaf.
Leaves split(const Instance& instance);

}  // namespace arenite::plan
