#include "src/base/processors.hpp"
#include "src/base/words.hpp"
#include "src/cli/doctor/checks.hpp"
#include "src/cli/output.hpp"
#include "src/runtime/environment.hpp"
#include "src/runtime/hwloc.hpp"
#include "src/runtime/starpu.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace arenite::cli::doctor {
namespace {

/// Of its interface: it does not tell its own.
std::string hwloc_version() {
  const unsigned version = hwloc_get_api_version();
  return fmt::format("{}.{}", version >> 16, version >> 8 & 0xff);
}

/// Without --workers (src/runtime/session.cpp).
int workers_of_training(int usable) {
  const auto chosen = runtime::whole_number(runtime::environment("STARPU_NCPU"));
  if (chosen && *chosen > 0) return *chosen;
  return std::min(usable, runtime::starpu::max_cpu_workers);
}

}  // namespace

Finding check_processors() {
  Finding finding;
  // As training has it: devices are none of its business.
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 0);
  // With what is there, whether this process may use it or not.
  const runtime::Topology topology = runtime::load_topology([](hwloc_topology_t made) {
    return hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  });
  if (!topology) {
    finding.says = "hwloc finds no processors";
    finding.fails(finding.says, "mount /proc and /sys");
    return finding;
  }
  const auto count = [&](hwloc_obj_type_t type) {
    return std::max(0, hwloc_get_nbobjs_by_type(topology.get(), type));
  };
  const int cores = count(HWLOC_OBJ_CORE), threads = count(HWLOC_OBJ_PU);
  const int nodes = count(HWLOC_OBJ_NUMANODE);
  const std::uint64_t memory = hwloc_get_root_obj(topology.get())->total_memory;
  const CgroupLimits limits = cgroup_limits();
  const int allowed = allowed_processors(), usable = usable_processors(limits);
  const int workers = workers_of_training(usable);
  finding.facts = {{"hwloc_interface", hwloc_version()},
                   {"cores", cores},
                   {"processors", threads},
                   {"allowed", allowed},
                   {"usable", usable},
                   {"workers", workers},
                   {"numa_nodes", nodes},
                   {"cache_bytes", nullptr},
                   {"memory", memory},
                   {"cgroup_processors", or_null(limits.processors)},
                   {"cgroup_memory", or_null(limits.memory)}};

  finding.says =
      fmt::format("{} on {}, {} on {}", counted(threads, "processor"), counted(cores, "core"),
                  memory > 0 ? bytes_text(memory) + " of memory" : "unknown memory",
                  counted(nodes, "NUMA node"));
  if (memory == 0)
    finding.note("the system does not say how much memory it has", "mount /proc and /sys");
  std::string caches;
  for (const auto& [name, type] : {std::pair{"L1d", HWLOC_OBJ_L1CACHE},
                                   {"L2", HWLOC_OBJ_L2CACHE},
                                   {"L3", HWLOC_OBJ_L3CACHE}}) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(topology.get(), type, 0);
    const std::uint64_t bytes = cache == nullptr ? 0 : cache->attr->cache.size;
    finding.facts["cache_bytes"][name] = bytes;
    if (bytes > 0) caches += fmt::format(", {} {}", name, bytes_text(bytes));
  }
  finding.details.push_back("hwloc, interface " + hwloc_version() + caches);
  if (limits.memory && std::cmp_less(*limits.memory, memory)) {
    finding.details.push_back(
        fmt::format("the control group leaves {} of the memory", bytes_text(*limits.memory)));
  }
  if (allowed < threads)
    finding.details.push_back(fmt::format("this process may run on {}", allowed));
  if (limits.processors && *limits.processors < threads) {
    finding.details.push_back(
        fmt::format("the control group grants the time of {:.3g}", *limits.processors));
  }
  if (workers > usable) {
    finding.note(fmt::format("STARPU_NCPU={} workers wait for each other", workers),
                 fmt::format("unset STARPU_NCPU, or STARPU_NCPU={}", usable));
  }
  return finding;
}

}  // namespace arenite::cli::doctor
