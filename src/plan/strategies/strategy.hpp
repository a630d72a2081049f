// What a packing strategy is: a name and a pure, deterministic function. Adding one takes a
// function and a line in the table of strategy.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

/// What a strategy may know besides the instance.
struct Limits {
  std::int64_t lower_bound = 0;  ///< no peak is below it: stop there
  std::int64_t work = 0;         ///< steps of search, some ten nanoseconds each; 0 for none
  /// What placing every item of a large part for the first time may take beyond that: nothing
  /// later improves it as much.
  std::int64_t first_dive = 0;
  /// The best offsets that others found, to begin with; null where there are none.
  const std::vector<std::int64_t>* incumbent = nullptr;
};

struct Packing {
  /// Of each item: aligned, the fixed one where given, and disjoint for items that conflict.
  std::vector<std::int64_t> offsets;
  /// At least that of the limits; higher where a search proved it.
  std::int64_t lower_bound = 0;
};

struct Strategy {
  std::string_view name;
  std::string_view summary;
  bool in_auto = false;  // one of those that "auto" tries
  /// Ties are broken by item index; nothing depends on time, the machine or randomness.
  Packing (*pack)(const Instance& instance, const Limits& limits) = nullptr;
};

std::span<const Strategy> all_strategies();

/// The highest end of an item, rounded up to the granule of blocks.
std::int64_t peak_of(const Instance& instance, const std::vector<std::int64_t>& offsets);

}  // namespace arenite::plan
