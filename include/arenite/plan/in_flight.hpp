// Tables whose buffers are in use by several tasks at once.
#pragma once

#include <arenite/plan/problem.hpp>

#include <cstdint>

namespace arenite::plan {

/// The problem of a line of tasks, one a moment, of which up to `tasks` are under way at once: what
/// ends at moment t may still be in use until t + tasks - 1, so every lifetime ends so much later.
/// 1 changes nothing. Throws Error below 1, on a problem with a precedence, on missing lifetimes,
/// and where a lifetime would end above Problem::limit. Pure; safe from any thread.
Problem with_tasks_in_flight(const Problem& problem, std::int64_t tasks);

}  // namespace arenite::plan
