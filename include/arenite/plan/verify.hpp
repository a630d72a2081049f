// Checks a plan, whoever made it, against its problem. Shares no code with the strategies.
#pragma once

#include <arenite/plan/plan.hpp>
#include <arenite/plan/problem.hpp>

namespace arenite::plan {

/// Returns when the plan is sound; throws Error on the first finding:
/// - the plan's buffers are not the problem's (matched by name; their order may differ), or have
///   lifetimes that contradict the problem's precedence,
/// - an offset that is negative, unaligned or not the fixed one,
/// - two conflicting buffers in the same bytes: the message names both, with sizes, lifetimes and
///   offsets,
/// - a peak, of a space or in total, other than the offsets give, or above a space's capacity,
/// - a max_live or lower bound that cannot be confirmed, or `optimal` where peak > lower bound,
/// - a reuse list other than find_reuse() gives.
/// Pure and safe from any thread. O(n log n) for lifetimes; with a precedence O(n²) and the cost of
/// lower_bounds().
void verify(const Problem& problem, const Plan& plan);

}  // namespace arenite::plan
