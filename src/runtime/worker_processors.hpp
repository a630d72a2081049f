// Which processor each of StarPU's workers is bound to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace arenite::runtime {

/// The processors that workers may be bound to, as StarPU numbers them: one of each core first, and
/// their hyperthreads behind. Of those that this thread may run on, or, where
/// $STARPU_WORKERS_GETBIND is 0, of the machine's. Empty where hwloc cannot tell.
std::vector<unsigned> worker_processors();

/// The environment says itself where workers go.
bool processors_are_chosen();

/// What to tell of workers that StarPU put on one processor although there are `processors`; empty:
/// each has one of its own, or they are more than that. While StarPU runs.
std::string shared_processors(std::size_t processors);

}  // namespace arenite::runtime
