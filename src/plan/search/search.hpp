// The lowest peak that a budget of work finds, and what it proves on the way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/plan/instance.hpp"
#include "src/plan/strategies/strategy.hpp"

namespace arenite::plan {

/// What the search's books grow with: pairs of items alive together, on a line with gaps the
/// moments at which one of their pieces ends, else the cliques. Larger leaves (leaves.hpp), and
/// those for which placing every item once takes more than the limits, are left to the
/// neighbourhood search (neighbourhoods.hpp).
inline constexpr std::size_t most_items_on_a_line = 65'536;
inline constexpr std::int64_t most_pairs_on_a_line = std::int64_t{1} << 27;
inline constexpr std::size_t most_pieces_on_a_line = 4096;
inline constexpr std::size_t most_items_in_an_order = 512;

/// Searches at the lower bound first (a large leaf half-way to it), then between it and the best
/// packing found, with ever larger budgets, in units of Packer::work(). Begins with the incumbent
/// or, where there is none or the instance splits, with the first-fit strategies, whatever the
/// budget. What cannot be searched, or no more, is improved by neighbourhoods; where that is the
/// part with the highest bound, nothing else is done.
Packing search(const Instance& instance, const Limits& limits);

}  // namespace arenite::plan
