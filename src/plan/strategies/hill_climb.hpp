// Hill climbing over the order in which first fit places the items.
#pragma once

#include "src/plan/strategies/strategy.hpp"

namespace arenite::plan {

/// Begins with the items by size. A move takes an item at the very top to just before one that was
/// in its way; it is kept if the peak does not rise by more than a threshold that falls to 0 over
/// the run (threshold accepting: Dueck and Scheuer, 1990). Returns the best of all. Seeded with a
/// constant; the moves are as many as the limits' work allows, and some at least.
Packing hill_climb(const Instance& instance, const Limits& limits);

}  // namespace arenite::plan
