// A transitive order, relabelled so that smaller ranks come first, and its covering pairs.
#pragma once

#include <arenite/plan/problem.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite::plan {

/// The same order with buffers sorted by descending number of successors. In a strict transitive
/// order, what comes before has more successors, so that i before j implies rank(i) < rank(j);
/// elsewhere this fails for some pair, which is how validate() finds cycles.
struct Topology {
  explicit Topology(const Precedence& order);

  std::vector<std::size_t> successors;  // by buffer: how many
  std::vector<std::size_t> buffer;      // by rank
  Precedence order;                     // on ranks
};

/// Calls visit(a, b) for every covering pair of ranks (a before b and nothing between), from the
/// last a to the first. Every relation of a transitive order is a chain of these.
template <class Visit>
void visit_covers(const Topology& topology, Visit&& visit) {
  const std::size_t n = topology.buffer.size();
  std::vector<std::uint64_t> open;
  for (std::size_t a = n; a-- > 0;) {
    const auto row = topology.order.row(a);
    open.assign(row.begin(), row.end());
    for (std::size_t w = a / 64; w < open.size(); ++w) {
      while (open[w] != 0) {
        const std::size_t b = w * 64 + static_cast<std::size_t>(std::countr_zero(open[w]));
        open[w] &= open[w] - 1;
        visit(a, b);
        // What b precedes is not covered by a; it lies at higher ranks, still ahead.
        const auto implied = topology.order.row(b);
        for (std::size_t v = w; v < open.size(); ++v) open[v] &= ~implied[v];
      }
    }
  }
}

}  // namespace arenite::plan
