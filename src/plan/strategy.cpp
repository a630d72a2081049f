#include "src/plan/strategy.hpp"

#include <array>

namespace arenite::plan {
namespace {

constexpr std::array table{
    Strategy{.name = "first_fit_by_size",
             .summary = "largest first, each at the lowest gap that takes it",
             .in_auto = true,
             .place = first_fit_by_size},
    Strategy{.name = "first_fit_by_area",
             .summary = "the same, by size times lifetime",
             .in_auto = true,
             .place = first_fit_by_area},
    Strategy{.name = "first_fit_by_lifetime",
             .summary = "the same, longest lifetime first",
             .in_auto = true,
             .place = first_fit_by_extent},
    Strategy{.name = "bump",
             .summary = "one above the other, without any reuse",
             .in_auto = false,
             .place = bump},
};

}  // namespace

std::span<const Strategy> all_strategies() { return table; }

}  // namespace arenite::plan
