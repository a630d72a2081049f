#include "src/base/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <vector>

namespace arenite {

int allowed_processors() {
  // The kernel's set may be larger than cpu_set_t.
  constexpr std::size_t most = 1 << 10;  // sets: a million processors
  std::vector<cpu_set_t> sets(1);
  while (::sched_getaffinity(0, sets.size() * sizeof(cpu_set_t), sets.data()) != 0) {
    if (errno != EINVAL || sets.size() >= most)
      return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    sets.resize(sets.size() * 2);
  }
  return std::max(1, CPU_COUNT_S(sets.size() * sizeof(cpu_set_t), sets.data()));
}

int usable_processors(const CgroupLimits& limits) {
  const int allowed = allowed_processors();
  if (!limits.processors) return allowed;
  return static_cast<int>(std::clamp<double>(*limits.processors, 1, allowed));
}

}  // namespace arenite
