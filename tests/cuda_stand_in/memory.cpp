#include "tests/cuda_stand_in/state.hpp"

#include <cstdlib>
#include <cstring>
#include <map>

namespace cuda_stand_in {
namespace {

const Allocation* find(const std::map<std::uintptr_t, Allocation>& all, const void* at,
                       std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  auto it = all.upper_bound(address);
  if (it == all.begin()) return nullptr;
  --it;
  const std::size_t before = address - it->first;
  return before <= it->second.bytes && bytes <= it->second.bytes - before ? &it->second : nullptr;
}

bool on_device(const void* at, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return find(s.allocations, at, bytes) != nullptr;
}
bool is_pinned(const void* at, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return find(s.pinned, at, bytes) != nullptr;
}

void check_copy(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault) {
    if (to_device != on_device(to, bytes) || from_device != on_device(from, bytes))
      refuse("a copy of another direction than it says");
  }
  for (const void* side : {to, from}) {
    if (mine().capture.graph != nullptr && !on_device(side, bytes) && !is_pinned(side, bytes))
      refuse("a recorded copy of memory that is not pinned");
  }
  ++state().copies;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  check_copy(to, from, bytes, kind);
  enqueue(stream, {.kind = Deed::Kind::copy, .to = to, .from = from, .bytes = bytes});
  return cudaSuccess;
}

cudaError_t allocate(void** made, std::size_t bytes, bool there) {
  State& s = state();
  touch();
  const std::lock_guard lock(s.mutex);
  auto& in_use = s.in_use[static_cast<std::size_t>(mine().device)];
  if (there && in_use + bytes > memory) return failed(cudaErrorMemoryAllocation);
  constexpr std::size_t alignment = 512;
  *made = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  std::memset(*made, 0xa5, bytes);  // nobody has cleared it
  (there ? s.allocations : s.pinned)[reinterpret_cast<std::uintptr_t>(*made)] = {bytes,
                                                                                 mine().device};
  if (there) in_use += bytes;
  ++s.memory_changes;
  return cudaSuccess;
}

cudaError_t free_from(std::map<std::uintptr_t, Allocation>& all, void* at) {
  State& s = state();
  touch();
  if (at == nullptr) return cudaSuccess;
  const std::lock_guard lock(s.mutex);
  const auto known = all.find(reinterpret_cast<std::uintptr_t>(at));
  if (known == all.end()) refuse("memory to free that was not allocated");
  if (&all == &s.allocations) {
    if (known->second.device != mine().device) refuse("memory to free with another device current");
    s.in_use[static_cast<std::size_t>(known->second.device)] -= known->second.bytes;
  }
  all.erase(known);
  ++s.memory_changes;
  std::free(at);
  return cudaSuccess;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  touch();
  const std::lock_guard lock(state().mutex);
  *total = memory;
  *free = memory - state().in_use[static_cast<std::size_t>(mine().device)];
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  not_captured("an allocation");
  return allocate(made, bytes, true);
}
cudaError_t cudaFree(void* at) {
  not_captured("freeing");
  finish_all();
  return free_from(state().allocations, at);
}
cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned) {
  not_captured("an allocation");
  return allocate(made, bytes, false);
}
cudaError_t cudaFreeHost(void* at) {
  not_captured("freeing");
  return free_from(state().pinned, at);
}
cudaError_t cudaHostRegister(void* at, std::size_t bytes, unsigned) {
  not_captured("pinning");
  touch();
  const std::lock_guard lock(state().mutex);
  state().pinned[reinterpret_cast<std::uintptr_t>(at)] = {bytes, mine().device};
  ++state().memory_changes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* at) {
  not_captured("unpinning");
  touch();
  const std::lock_guard lock(state().mutex);
  if (state().pinned.erase(reinterpret_cast<std::uintptr_t>(at)) == 0)
    refuse("memory to unpin that was not pinned");
  ++state().memory_changes;
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** there, void* here, unsigned) {
  touch();
  if (!is_pinned(here, 1)) return failed(cudaErrorInvalidValue);
  *there = here;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* at) {
  *attributes = {};
  attributes->type = on_device(at, 1)   ? cudaMemoryTypeDevice
                     : is_pinned(at, 1) ? cudaMemoryTypeHost
                                        : cudaMemoryTypeUnregistered;
  attributes->devicePointer = const_cast<void*>(at);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return copy(to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  not_captured("a copy that is waited for");
  copy(to, from, bytes, kind, nullptr);
  stream_of(nullptr).deeds.finish();
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
  if (!on_device(at, bytes)) refuse("memory to fill that is no device's");
  enqueue(stream, {.kind = Deed::Kind::fill, .to = at, .bytes = bytes, .value = value});
  return cudaSuccess;
}
cudaError_t cudaMemset(void* at, int value, std::size_t bytes) {
  not_captured("filling that is waited for");
  return cudaMemsetAsync(at, value, bytes, nullptr);
}

}  // extern "C"
