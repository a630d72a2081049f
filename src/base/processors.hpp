// How many threads are worth starting.
#pragma once

#include "src/base/cgroup.hpp"

namespace arenite {

/// Processors that this thread may run on: what its affinity (taskset, a job's scheduler) and its
/// cpuset leave. At least 1.
int allowed_processors();

/// The same, or what the control groups grant the time of, rounded down, where that is less:
/// threads beyond it only wait for each other. At least 1.
int usable_processors(const CgroupLimits& limits = cgroup_limits());

}  // namespace arenite
