#include "src/plan/strategies/strategy.hpp"

#include <algorithm>
#include <array>

#include "src/plan/search/neighbourhoods.hpp"
#include "src/plan/search/search.hpp"
#include "src/plan/strategies/hill_climb.hpp"
#include "src/plan/strategies/ordered_fit.hpp"
#include "src/plan/strategies/slots.hpp"

namespace arenite::plan {
namespace {

template <std::vector<std::int64_t> (*place)(const Instance&)>
Packing simple(const Instance& instance, const Limits& limits) {
  return {place(instance), limits.lower_bound};
}

template <ItemOrder (*order)(const Instance&), Gap gap>
Packing fit(const Instance& instance, const Limits& limits) {
  return {fit_in_order(instance, order(instance), gap), limits.lower_bound};
}

constexpr std::array table{
    Strategy{.name = "first_fit_by_size",
             .summary = "largest first, each at the lowest gap that takes it",
             .in_auto = true,
             .pack = fit<by_size, Gap::lowest>},
    Strategy{.name = "first_fit_by_area",
             .summary = "the same, by size times lifetime",
             .in_auto = true,
             .pack = fit<by_area, Gap::lowest>},
    Strategy{.name = "first_fit_by_lifetime",
             .summary = "the same, longest lifetime first",
             .in_auto = true,
             .pack = fit<by_extent, Gap::lowest>},
    Strategy{.name = "search",
             .summary = "exact search, at the lower bound first; proves what it can",
             .in_auto = true,
             .pack = search},
    Strategy{.name = "large_neighbourhoods",
             .summary = "what ends too high is put back where the least has to make room",
             .pack = search_neighbourhoods},
    Strategy{.name = "best_fit_by_size",
             .summary = "largest first, each in the smallest gap that takes it, as TFLite does",
             .pack = fit<by_size, Gap::tightest>},
    Strategy{.name = "first_fit_by_conflicts",
             .summary = "what conflicts with most first, at the lowest gap, as TVM's USMP does",
             .pack = fit<by_conflicts, Gap::lowest>},
    Strategy{.name = "hill_climbing",
             .summary = "first fit, its order improved move by move",
             .pack = hill_climb},
    Strategy{.name = "first_fit_in_time",
             .summary = "as a run-time allocator that takes the lowest free block",
             .pack = fit<in_time, Gap::lowest>},
    Strategy{.name = "best_fit_in_time",
             .summary = "as a run-time allocator that takes the smallest free block",
             .pack = fit<in_time, Gap::free_block>},
    Strategy{.name = "storage_tokens",
             .summary = "whole slots, of 1/16 to 16 times the size, as TVM's graph planner",
             .pack = simple<storage_tokens>},
    Strategy{.name = "linear_scan",
             .summary = "whole slots of any size, as registers are given out",
             .pack = simple<linear_scan>},
    Strategy{
        .name = "bump", .summary = "one above the other, without any reuse", .pack = simple<bump>},
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
