// Counts every heap call of a process that preloads this library: ours, StarPU's, the kernels'.
//
//   LD_PRELOAD=libarenite_heap_counter.so program
//
// The program finds `arenite_heap_calls` by dlsym. Forwards to the C library's own functions; the
// few calls that dlsym itself makes while we look those up come from a small static buffer.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace {

std::atomic<long> calls{0};

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

alignas(16) char bootstrap[8192];
std::atomic<std::size_t> bootstrap_used{0};

bool from_bootstrap(const void* p) { return p >= bootstrap && p < bootstrap + sizeof bootstrap; }

void* bootstrap_allocate(std::size_t bytes) {
  const std::size_t at = bootstrap_used.fetch_add((bytes + 15) / 16 * 16);
  return at + bytes <= sizeof bootstrap ? bootstrap + at : nullptr;
}

thread_local bool resolving = false;

/// The next library's function; null while it is being looked up on this thread.
template <class F>
F resolve(std::atomic<F>& slot, const char* name) {
  F found = slot.load(std::memory_order_acquire);
  if (found || resolving) return found;
  resolving = true;
  found = next<F>(name);
  slot.store(found, std::memory_order_release);
  resolving = false;
  return found;
}

using Malloc = void* (*)(std::size_t);
using Free = void (*)(void*);
using Calloc = void* (*)(std::size_t, std::size_t);
using Realloc = void* (*)(void*, std::size_t);
using Align = void* (*)(std::size_t, std::size_t);
using PosixAlign = int (*)(void**, std::size_t, std::size_t);

std::atomic<Malloc> real_malloc{nullptr};
std::atomic<Free> real_free{nullptr};
std::atomic<Calloc> real_calloc{nullptr};
std::atomic<Realloc> real_realloc{nullptr};
std::atomic<Align> real_memalign{nullptr}, real_aligned{nullptr};
std::atomic<PosixAlign> real_posix{nullptr};

/// Before anybody asks: dlerror calls realloc, and looking that up by dlsym there would free the
/// message that dlerror is still writing.
[[gnu::constructor]] void resolve_all() {
  resolve(real_malloc, "malloc");
  resolve(real_free, "free");
  resolve(real_calloc, "calloc");
  resolve(real_realloc, "realloc");
  resolve(real_memalign, "memalign");
  resolve(real_aligned, "aligned_alloc");
  resolve(real_posix, "posix_memalign");
}

}  // namespace

extern "C" {

/// malloc, calloc, realloc, memalign, aligned_alloc, posix_memalign and free of a non-null pointer.
long arenite_heap_calls() { return calls.load(std::memory_order_relaxed); }

void* malloc(std::size_t bytes) {
  const Malloc real = resolve(real_malloc, "malloc");
  if (!real) return bootstrap_allocate(bytes);
  calls.fetch_add(1, std::memory_order_relaxed);
  return real(bytes);
}

void free(void* p) {
  if (!p || from_bootstrap(p)) return;
  const Free real = resolve(real_free, "free");
  if (!real) return;
  calls.fetch_add(1, std::memory_order_relaxed);
  real(p);
}

void* calloc(std::size_t count, std::size_t bytes) {
  const Calloc real = resolve(real_calloc, "calloc");
  if (!real) return bootstrap_allocate(count * bytes);  // static memory is zero
  calls.fetch_add(1, std::memory_order_relaxed);
  return real(count, bytes);
}

void* realloc(void* p, std::size_t bytes) {
  if (p && from_bootstrap(p)) {
    void* moved = malloc(bytes);
    const auto left =
        static_cast<std::size_t>(bootstrap + sizeof bootstrap - static_cast<char*>(p));
    if (moved) std::memcpy(moved, p, bytes < left ? bytes : left);
    return moved;
  }
  const Realloc real = resolve(real_realloc, "realloc");
  if (!real) return nullptr;
  calls.fetch_add(1, std::memory_order_relaxed);
  return real(p, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) {
  const Align real = resolve(real_memalign, "memalign");
  calls.fetch_add(1, std::memory_order_relaxed);
  return real ? real(alignment, bytes) : nullptr;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  const Align real = resolve(real_aligned, "aligned_alloc");
  calls.fetch_add(1, std::memory_order_relaxed);
  return real ? real(alignment, bytes) : nullptr;
}

int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  const PosixAlign real = resolve(real_posix, "posix_memalign");
  calls.fetch_add(1, std::memory_order_relaxed);
  return real ? real(out, alignment, bytes) : ENOMEM;
}
}
