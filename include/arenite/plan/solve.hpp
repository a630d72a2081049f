// Gives every buffer of a problem its place.
//
//   plan::Plan plan = plan::solve(problem);
//   std::cout << plan.peak << (plan.optimal ? " bytes, proved optimal\n" : " bytes\n");
//
// Pure functions: safe from any thread, no state, heap memory only while they run. A plan depends
// on the problem's buffers alone: not on the order in which they were added, not on the machine.
#pragma once

#include <arenite/error.hpp>
#include <arenite/plan/plan.hpp>
#include <arenite/plan/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::plan {

/// How long the search for a better plan may go on. Counted in steps, not in time, so that the plan
/// is the same on every machine; the times are those of one core of 2.5 GHz or so.
enum class Effort : std::uint8_t {
  fast,    ///< some 50 ms for a space
  normal,  ///< some 3 s, some 10 s for tens of thousands of buffers
  max,     ///< some 5 minutes
};

struct Options {
  /// A name of strategies(), or "auto": the best of several, until one is proved optimal.
  std::string strategy = "auto";
  Effort effort = Effort::normal;  ///< of strategies that search
  /// Bytes that the peak of no space may pass, besides the space's own capacity.
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();
};

/// Places every buffer; spaces are planned independently. Throws Error on an invalid problem
/// (Problem::validate), an unknown strategy, and a capacity that was not met; the message then says
/// whether that was proved impossible and which buffers are alive together where it is tightest.
/// A search among thousands of buffers takes up to 200 MiB of memory.
Plan solve(const Problem& problem, const Options& options = {});

/// The first space of the plan that needs more than `capacity` bytes or its own, if one does. For
/// those who want the plan all the same; solve() throws.
std::optional<Shortfall> find_shortfall(
    const Problem& problem, const Plan& plan,
    std::int64_t capacity = std::numeric_limits<std::int64_t>::max());

/// "infeasible: proved: at least 5 bytes; expected at most the capacity of 4 …", with the buffers
/// that are alive together.
ErrorText describe(const Problem& problem, const Shortfall& shortfall);

struct StrategyInfo {
  std::string_view name;
  std::string_view summary;
};

/// What Options::strategy may name, in the order in which "auto" tries them.
std::vector<StrategyInfo> strategies();

/// A peak that no plan of the space can be below.
struct LowerBound {
  Space space;
  std::int64_t max_live = 0;         ///< bytes, from buffers that conflict pairwise
  std::int64_t lower_bound = 0;      ///< max_live, or the highest end of a fixed buffer
  std::vector<std::size_t> witness;  ///< buffers behind max_live, in name order
};

/// For each space in use, ascending. Throws Error on an invalid problem.
///
/// With lifetimes max_live is the maximum over time of the live bytes; with a precedence it is a
/// maximum-weight antichain, found by one maximum flow (Dilworth's theorem with weights; Möhring,
/// "Algorithmic aspects of comparability graphs and interval graphs", 1985).
///
/// These are bytes that are really needed. Padding above a buffer may serve one that is aligned
/// less strictly, and the topmost buffer needs none. So for each alignment `a` in use, the buffers
/// aligned to `a` or more take at least the sum of their sizes rounded up to `a`, less the most
/// that one of them is padded; and all take at least the sum of their sizes. max_live is the best
/// of these. Only where the problem's blocks are multiples of a granule are bounds rounded up to
/// it.
std::vector<LowerBound> lower_bounds(const Problem& problem);

}  // namespace arenite::plan
