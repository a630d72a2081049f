// What a packing strategy is: a name and a pure, deterministic function. Adding one takes a
// function and a line in the table of strategy.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

struct Strategy {
  std::string_view name;
  std::string_view summary;
  bool in_auto = false;  // one of those that "auto" tries
  /// Returns the offset of each item: aligned, the fixed one where given, and disjoint for items
  /// that conflict. Ties are broken by item index, nothing depends on time or randomness.
  std::vector<std::int64_t> (*place)(const Instance& instance) = nullptr;
};

std::span<const Strategy> all_strategies();

std::vector<std::int64_t> bump(const Instance& instance);
std::vector<std::int64_t> first_fit_by_size(const Instance& instance);
std::vector<std::int64_t> first_fit_by_area(const Instance& instance);
std::vector<std::int64_t> first_fit_by_extent(const Instance& instance);

}  // namespace arenite::plan
