#include <arenite/error.hpp>
#include <arenite/runtime/block.hpp>

#include "src/runtime/counters.hpp"
#include "src/runtime/device.hpp"
#include "src/runtime/hwloc.hpp"
#include "src/runtime/starpu.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace arenite::runtime {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Binds the pages to the NUMA nodes of StarPU's CPU workers. Best effort: a machine with one node,
/// or a container that forbids binding, loses nothing but locality.
void place_near_workers(std::byte* data, std::size_t bytes) {
  // The machine's NUMA nodes, and nothing else of it; discovered once, which takes milliseconds.
  static const Topology nodes = load_topology([](hwloc_topology_t topology) {
    return hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  });
  if (!nodes || hwloc_get_nbobjs_by_type(nodes.get(), HWLOC_OBJ_NUMANODE) <= 1) return;
  const Bitmap cpus(hwloc_bitmap_alloc());
  for (unsigned worker = 0; worker < starpu_worker_get_count(); ++worker) {
    if (starpu_worker_get_type(static_cast<int>(worker)) != STARPU_CPU_WORKER) continue;
    const Bitmap mine(starpu_worker_get_hwloc_cpuset(static_cast<int>(worker)));
    hwloc_bitmap_or(cpus.get(), cpus.get(), mine.get());
  }
  if (hwloc_bitmap_iszero(cpus.get()) == 0)
    hwloc_set_area_membind(nodes.get(), data, bytes, cpus.get(), HWLOC_MEMBIND_INTERLEAVE, 0);
}

std::string why_not_locked(std::size_t bytes, int error) {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < bytes) {
    return "no (" + std::to_string(bytes >> 10) + " KiB, limit " +
           std::to_string(limit.rlim_cur >> 10) + " KiB: raise `ulimit -l`)";
  }
  return std::string("no (") + std::strerror(error) + ")";
}

}  // namespace

Block::Block(std::string name, std::int64_t bytes, Space space)
    : name_(std::move(name)), bytes_(bytes), space_(space) {
  if (bytes < 0 || bytes > space.capacity) {
    fail({.found = "block '" + name_ + "' of " + std::to_string(bytes) + " bytes",
          .expected = "0 to " + std::to_string(space.capacity) + " bytes, the capacity of " +
                      to_string(space)});
  }
  if (space.memory != MemoryKind::host) device_ = &device_of(space);
}

Block::Block(Block&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(other.bytes_),
      space_(other.space_),
      data_(std::exchange(other.data_, nullptr)),
      mapped_(other.mapped_),
      through_starpu_(other.through_starpu_),
      device_(other.device_),
      pinned_(std::move(other.pinned_)) {}

Block::~Block() {
  if (!data_) return;
  if (device_) {
    device_->release(data_);
    return;
  }
  if (through_starpu_) starpu_memory_unpin(data_, mapped_);
  munmap(data_, mapped_);
}

std::byte* Block::data() {
  if (!data_ && bytes_ > 0) allocate();
  return data_;
}

void Block::allocate() {
  if (!device_) {
    map();
    return;
  }
  try {
    data_ = device_->allocate(bytes_);
  } catch (const Failure& failure) {
    throw Failure({.found = failure.text().found,
                   .expected = "memory for block '" + name_ + "': " + failure.text().expected,
                   .hint = "use a smaller batch"});
  }
  mapped_ = static_cast<std::size_t>(bytes_);
  pinned_ = "device";
  ++atomic_counters().blocks;
}

void Block::map() {
  // Small blocks stay on small pages; large ones start on a huge page, which the kernel can then
  // use.
  const auto bytes = static_cast<std::size_t>(bytes_);
  const bool huge = bytes >= huge_page / 2;
  const std::size_t unit = huge ? huge_page : std::size_t{4096};
  const std::size_t want = (bytes + unit - 1) / unit * unit;
  const std::size_t slack = huge ? huge_page : 0;
  void* raw =
      mmap(nullptr, want + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    throw Failure(
        {.found = "the system refused " + std::to_string(want) + " bytes: " + std::strerror(errno),
         .expected = "memory for block '" + name_ + "'",
         .hint = "use a smaller batch"});
  }
  auto* begin = static_cast<std::byte*>(raw);
  if (huge) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t skip = (huge_page - address % huge_page) % huge_page;
    if (skip > 0) munmap(begin, skip);
    if (slack > skip) munmap(begin + skip + want, slack - skip);
    begin += skip;
    madvise(begin, want, MADV_HUGEPAGE);
  }
  data_ = begin;
  mapped_ = want;
  ++atomic_counters().blocks;
  place_near_workers(data_, mapped_);

  // starpu_memory_pin registers with CUDA where there is one and does nothing elsewhere. It does so
  // in the current device's name, which might be one that nobody asked for.
  if (const auto devices = session_devices(); !devices.empty()) devices.front()->make_current();
  if (starpu_is_initialized() != 0 && starpu_cuda_worker_get_count() > 0 &&
      starpu_memory_pin(data_, mapped_) == 0) {
    through_starpu_ = true;
    pinned_ = "cuda";
  } else if (mlock(data_, mapped_) == 0) {
    pinned_ = "locked";
  } else {
    pinned_ = why_not_locked(mapped_, errno);
    std::memset(data_, 0, mapped_);  // first touch now, not in the first step
  }
  if (pinned_ == "cuda" || pinned_ == "locked") ++atomic_counters().pins;
}

}  // namespace arenite::runtime
