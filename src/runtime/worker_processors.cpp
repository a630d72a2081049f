#include "src/runtime/worker_processors.hpp"

#include "src/runtime/environment.hpp"
#include "src/runtime/hwloc.hpp"
#include "src/runtime/starpu.hpp"

#include <algorithm>
#include <map>

namespace arenite::runtime {

std::vector<unsigned> worker_processors() {
  // With all levels that StarPU looks at: its numbers follow from them.
  const Topology topology = load_topology([](hwloc_topology_t made) {
    return hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  });
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (!topology || !allowed) return {};
  if (environment("STARPU_WORKERS_GETBIND") == "0") {
    hwloc_bitmap_copy(allowed.get(), hwloc_topology_get_topology_cpuset(topology.get()));
  } else if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) != 0) {
    return {};
  }
  std::map<hwloc_obj_t, unsigned> taken;                  // of each core
  std::vector<std::pair<unsigned, unsigned>> processors;  // (thread of its core, StarPU's number)
  for (hwloc_obj_t unit = nullptr;
       (unit = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, unit)) != nullptr;) {
    if (hwloc_bitmap_isset(allowed.get(), unit->os_index) == 0) continue;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_CORE, unit);
    processors.emplace_back(taken[core != nullptr ? core : unit]++, unit->logical_index);
  }
  std::ranges::sort(processors);
  std::vector<unsigned> numbers;
  for (const auto& [thread, number] : processors) numbers.push_back(number);
  return numbers;
}

bool processors_are_chosen() {
  return !environment("STARPU_WORKERS_CPUID").empty() ||
         !environment("STARPU_WORKERS_COREID").empty() ||
         !environment("STARPU_NTHREADS_PER_CORE").empty();
}

std::string shared_processors(std::size_t processors) {
  const auto workers = static_cast<int>(starpu_worker_get_count());
  if (static_cast<std::size_t>(workers) > processors) return {};
  std::map<int, int> holders;
  for (int worker = 0; worker < workers; ++worker) {
    const int processor = starpu_worker_get_bindid(worker);
    const auto [holder, alone] = holders.emplace(processor, worker);
    if (processor < 0 || alone) continue;
    return "StarPU's workers " + std::to_string(holder->second) + " and " + std::to_string(worker) +
           " share processor " + std::to_string(processor) + " though there are " +
           std::to_string(processors) +
           ", and will hinder each other: do STARPU_WORKERS_CPUID, STARPU_WORKERS_COREID or "
           "STARPU_NTHREADS_PER_CORE say so?";
  }
  return {};
}

}  // namespace arenite::runtime
