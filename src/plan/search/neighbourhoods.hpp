// Large neighbourhood search: a packing improved by taking out what is too high, and making room.
#pragma once

#include "src/plan/instance.hpp"
#include "src/plan/strategies/strategy.hpp"

namespace arenite::plan {

/// For instances that are too large for the exact search. Begins with the incumbent, or with the
/// best first fit. What ends above a target, a little below the peak, is taken out. Each of it is
/// put into the lowest gap below the target; where there is none, it is put where what lies there
/// is cheapest to take out instead. That is put back in the same way, until nothing is left outside
/// and the target is the new peak. An item's price is its size times its lifetime, times how often
/// it found no gap: what is hard to place comes to stay (ejection with guided prices: Nagata and
/// Bräysy, "A powerful route minimization heuristic for the vehicle routing problem with time
/// windows", 2009).
Packing search_neighbourhoods(const Instance& instance, const Limits& limits);

}  // namespace arenite::plan
