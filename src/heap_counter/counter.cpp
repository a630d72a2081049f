// Counts every heap call of a process that preloads this library: ours, StarPU's, the kernels'.
//
//   LD_PRELOAD=build/release/libarenite_heap_counter.so program
//
// With ARENITE_HEAP_CALLERS=FILE it writes in the end how many each library made, in all and while
// steps were under way, of which a trainer tells it.
//
// Nothing links it: `arenite/runtime/heap_calls.hpp` finds its functions by name. It stands in
// front of the C library's functions and passes on to whoever had them next, so that another
// preloaded malloc still serves. What escapes it: system calls made directly, and a library opened
// with RTLD_DEEPBIND or linked with a malloc of its own.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "src/heap_counter/callers.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> heap_calls{0}, map_calls{0};

void count(std::atomic<long>& calls) { calls.fetch_add(1, std::memory_order_relaxed); }

/// What serves the few calls that come while the next functions are being looked up.
alignas(16) char bootstrap[8192];
std::atomic<std::size_t> bootstrap_used{0};

bool from_bootstrap(const void* p) { return p >= bootstrap && p < bootstrap + sizeof bootstrap; }

void* bootstrap_allocate(std::size_t bytes) {
  const std::size_t at = bootstrap_used.fetch_add((bytes + 15) / 16 * 16);
  return at + bytes <= sizeof bootstrap ? bootstrap + at : nullptr;
}

// Initial-exec: any other thread-local variable of a library may call malloc when it is first used.
[[gnu::tls_model("initial-exec")]] thread_local bool resolving = false;

/// The function of that name in the libraries behind this one.
template <class F>
class Next;

template <class R, class... A>
class Next<R(A...)> {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}

  /// Null while this thread is looking it up.
  auto find() -> R (*)(A...) {
    auto found = next_.load(std::memory_order_acquire);
    if (found || resolving) return found;
    resolving = true;
    found = reinterpret_cast<R (*)(A...)>(dlsym(RTLD_NEXT, name_));
    next_.store(found, std::memory_order_release);
    resolving = false;
    return found;
  }

 private:
  const char* name_;
  std::atomic<R (*)(A...)> next_{nullptr};
};

constinit Next<void*(std::size_t)> next_malloc("malloc"), next_valloc("valloc"),
    next_pvalloc("pvalloc");
constinit Next<void(void*)> next_free("free");
constinit Next<void*(std::size_t, std::size_t)> next_calloc("calloc"), next_memalign("memalign"),
    next_aligned_alloc("aligned_alloc");
constinit Next<void*(void*, std::size_t)> next_realloc("realloc");
constinit Next<int(void**, std::size_t, std::size_t)> next_posix_memalign("posix_memalign");
constinit Next<void*(void*, std::size_t, int, int, int, off64_t)> next_mmap("mmap64");
constinit Next<int(void*, std::size_t)> next_munmap("munmap");
constinit Next<void*(void*, std::size_t, std::size_t, int, void*)> next_mremap("mremap");
constinit Next<int(void*)> next_brk("brk");
constinit Next<void*(std::intptr_t)> next_sbrk("sbrk");

/// Before anybody asks: dlerror calls realloc, and looking that up by dlsym there would free the
/// message that dlerror is still writing.
[[gnu::constructor]] void find_all() {
  next_malloc.find(), next_valloc.find(), next_pvalloc.find(), next_free.find();
  next_calloc.find(), next_memalign.find(), next_aligned_alloc.find();
  next_realloc.find(), next_posix_memalign.find();
  next_mmap.find(), next_munmap.find(), next_mremap.find(), next_brk.find(), next_sbrk.find();
}

/// Counts a call and passes it on; `failed` where there is nobody to pass it on to.
template <class R, class... A, class... Given>
R pass_on(std::atomic<long>& calls, Next<R(A...)>& next, R failed, Given... arguments) {
  const auto function = next.find();
  if (!function) {
    errno = ENOMEM;
    return failed;
  }
  count(calls);
  return function(arguments...);
}

void* not_mapped() { return MAP_FAILED; }

}  // namespace

// Each function of the heap begins with it; `free` of nothing is no call.
#define COUNT_CALLER                         \
  if (arenite::heap_counter::callers_wanted) \
  arenite::heap_counter::count_caller(__builtin_return_address(0))

extern "C" {

long arenite_heap_calls() { return heap_calls.load(std::memory_order_relaxed); }
long arenite_map_calls() { return map_calls.load(std::memory_order_relaxed); }
void arenite_heap_steps(int under_way) { arenite::heap_counter::set_under_way(under_way != 0); }

void* malloc(std::size_t bytes) noexcept {
  COUNT_CALLER;
  return next_malloc.find() ? pass_on<void*>(heap_calls, next_malloc, nullptr, bytes)
                            : bootstrap_allocate(bytes);
}

void free(void* p) noexcept {
  if (!p || from_bootstrap(p)) return;
  COUNT_CALLER;
  const auto next = next_free.find();
  if (!next) return;
  count(heap_calls);
  next(p);
}

void* calloc(std::size_t elements, std::size_t bytes) noexcept {
  COUNT_CALLER;
  return next_calloc.find() ? pass_on<void*>(heap_calls, next_calloc, nullptr, elements, bytes)
                            : bootstrap_allocate(elements * bytes);  // static memory is zero
}

void* realloc(void* p, std::size_t bytes) noexcept {
  COUNT_CALLER;
  if (!from_bootstrap(p) && next_realloc.find())
    return pass_on<void*>(heap_calls, next_realloc, nullptr, p, bytes);
  void* moved = malloc(bytes);
  if (moved && p) {
    const auto left =
        static_cast<std::size_t>(bootstrap + sizeof bootstrap - static_cast<char*>(p));
    std::memcpy(moved, p, bytes < left ? bytes : left);
  }
  return moved;
}

/// The C library's own goes on to realloc in some versions, and would be counted twice.
void* reallocarray(void* p, std::size_t elements, std::size_t bytes) noexcept {
  std::size_t all = 0;
  if (__builtin_mul_overflow(elements, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(p, all);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  COUNT_CALLER;
  return pass_on<void*>(heap_calls, next_memalign, nullptr, alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  COUNT_CALLER;
  return pass_on<void*>(heap_calls, next_aligned_alloc, nullptr, alignment, bytes);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  COUNT_CALLER;
  return pass_on<int>(heap_calls, next_posix_memalign, ENOMEM, out, alignment, bytes);
}

void* valloc(std::size_t bytes) noexcept {
  COUNT_CALLER;
  return pass_on<void*>(heap_calls, next_valloc, nullptr, bytes);
}

void* pvalloc(std::size_t bytes) noexcept {
  COUNT_CALLER;
  return pass_on<void*>(heap_calls, next_pvalloc, nullptr, bytes);
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  return pass_on(map_calls, next_mmap, not_mapped(), at, bytes, protection, flags, file, offset);
}

void* mmap64(void* at, std::size_t bytes, int protection, int flags, int file,
             off64_t offset) noexcept {
  return pass_on(map_calls, next_mmap, not_mapped(), at, bytes, protection, flags, file, offset);
}

int munmap(void* at, std::size_t bytes) noexcept {
  return pass_on(map_calls, next_munmap, -1, at, bytes);
}

void* mremap(void* at, std::size_t before, std::size_t bytes, int flags, ...) noexcept {
  void* wanted = nullptr;
  if (flags & MREMAP_FIXED) {
    va_list rest;
    va_start(rest, flags);
    wanted = va_arg(rest, void*);
    va_end(rest);
  }
  return pass_on(map_calls, next_mremap, not_mapped(), at, before, bytes, flags, wanted);
}

int brk(void* end) noexcept { return pass_on(map_calls, next_brk, -1, end); }
void* sbrk(std::intptr_t bytes) noexcept {
  return pass_on(map_calls, next_sbrk, not_mapped(), bytes);
}
}
