// The machine as hwloc sees it.
#pragma once

#include <hwloc.h>

#include <memory>
#include <type_traits>

namespace arenite::runtime {

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, FreeTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

/// Of what `choose(topology)` chooses, one of hwloc's functions for that. Null where hwloc cannot
/// tell.
template <class Choose>
Topology load_topology(Choose choose) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  Topology topology(made);
  if (choose(made) != 0 || hwloc_topology_load(made) != 0) return nullptr;
  return topology;
}

}  // namespace arenite::runtime
