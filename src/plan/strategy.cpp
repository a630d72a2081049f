#include "src/plan/strategy.hpp"

#include <algorithm>
#include <array>

#include "src/plan/search/search.hpp"

namespace arenite::plan {
namespace {

template <auto place>
Packing simple(const Instance& instance, const Limits& limits) {
  return {place(instance), limits.lower_bound};
}

constexpr std::array table{
    Strategy{.name = "first_fit_by_size",
             .summary = "largest first, each at the lowest gap that takes it",
             .in_auto = true,
             .pack = simple<first_fit_by_size>},
    Strategy{.name = "first_fit_by_area",
             .summary = "the same, by size times lifetime",
             .in_auto = true,
             .pack = simple<first_fit_by_area>},
    Strategy{.name = "first_fit_by_lifetime",
             .summary = "the same, longest lifetime first",
             .in_auto = true,
             .pack = simple<first_fit_by_extent>},
    Strategy{.name = "search",
             .summary = "exact search, at the lower bound first; proves what it can",
             .in_auto = true,
             .pack = search},
    Strategy{.name = "bump",
             .summary = "one above the other, without any reuse",
             .in_auto = false,
             .pack = simple<bump>},
};

}  // namespace

std::span<const Strategy> all_strategies() { return table; }

std::int64_t peak_of(const Instance& instance, const std::vector<std::int64_t>& offsets) {
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    peak = std::max(peak, offsets[i] + instance.items[i].bytes);
  }
  return round_up(peak, instance.granule);
}

}  // namespace arenite::plan
