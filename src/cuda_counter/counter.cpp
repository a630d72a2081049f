// Counts what a process that preloads this library asks of CUDA's memory: calls, who made them, and
// the bytes that are held.
//
//   LD_PRELOAD=build/cuda/libarenite_cuda_counter.so ARENITE_CUDA_COUNTS=counts.json program
//
// Nothing links it, and it needs no toolkit: it stands in front of the functions of a shared
// libcudart, which are declared here by their binary interface, and passes on to them. Calls are
// StarPU's, NVIDIA's own libraries', or ours. What escapes it: a libcudart that is linked in
// statically, as in cuBLAS and cuDNN, the driver's own functions, and what CUDA takes for itself
// (its context, kernels, recorded graphs).
//
// A program that finds arenite_cuda_programs_are_built() by its name calls it once all is built:
// the most bytes held by then, those of trial runs among them, are told apart from those held
// later.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Error = int;  // cudaError_t
constexpr Error success = 0, no_library = 303;
using Stream = void*;

enum Owner : std::size_t { ours, starpu, nvidia, owners };
constexpr std::array<const char*, owners> owner_names{"ours", "starpu", "nvidia"};

/// Every function that stands below, by its number.
enum Function : std::size_t {
  f_malloc,
  f_free,
  f_malloc_host,
  f_free_host,
  f_host_alloc,
  f_host_register,
  f_host_unregister,
  f_malloc_managed,
  f_malloc_pitch,
  f_malloc_3d,
  f_malloc_async,
  f_malloc_pool,
  f_free_async,
  f_malloc_array,
  f_free_array,
  functions
};
constexpr std::array<const char*, functions> names{
    "cudaMalloc",      "cudaFree",         "cudaMallocHost",     "cudaFreeHost",
    "cudaHostAlloc",   "cudaHostRegister", "cudaHostUnregister", "cudaMallocManaged",
    "cudaMallocPitch", "cudaMalloc3D",     "cudaMallocAsync",    "cudaMallocFromPoolAsync",
    "cudaFreeAsync",   "cudaMallocArray",  "cudaFreeArray"};

std::array<std::array<std::atomic<long>, owners>, functions> calls{};
std::array<std::atomic<void*>, functions> next{};

Owner owner_of(const void* caller) {
  Dl_info where{};
  if (dladdr(caller, &where) == 0 || !where.dli_fname) return ours;
  const char* slash = std::strrchr(where.dli_fname, '/');
  const char* file = slash ? slash + 1 : where.dli_fname;
  if (std::strncmp(file, "libstarpu", 9) == 0) return starpu;
  return std::strncmp(file, "libcu", 5) == 0 || std::strncmp(file, "libnv", 5) == 0 ? nvidia : ours;
}

/// What is held on devices. A fixed table: to count must not allocate.
class Held {
 public:
  void take(const void* at, std::size_t bytes, Owner owner) {
    if (!at) return;
    const Lock lock(busy_);
    if (count_ == entries_.size()) {
      ++untracked_;
      return;
    }
    entries_[count_++] = {at, bytes, owner};
    change(owner, static_cast<long long>(bytes));
  }

  void give_back(const void* at) {
    if (!at) return;
    const Lock lock(busy_);
    for (std::size_t i = count_; i-- > 0;) {
      if (entries_[i].at != at) continue;
      change(entries_[i].owner, -static_cast<long long>(entries_[i].bytes));
      entries_[i] = entries_[--count_];
      return;
    }
  }

  long long now(std::size_t owner) const { return now_[owner]; }    ///< `owners`: all together
  long long peak(std::size_t owner) const { return peak_[owner]; }  ///< `owners`: all together
  long untracked() const { return untracked_; }

  /// From here on peaks are of what follows; those by now become `built`.
  void begin_anew() {
    const Lock lock(busy_);
    built_ = peak_;
    peak_ = now_;
    begun_anew_ = true;
  }
  long long built(std::size_t owner) const { return built_[owner]; }  ///< `owners`: all together
  bool begun_anew() const { return begun_anew_; }

 private:
  struct Entry {
    const void* at;
    std::size_t bytes;
    Owner owner;
  };
  class Lock {
   public:
    explicit Lock(std::atomic_flag& flag) : flag_(flag) {
      while (flag_.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { flag_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& flag_;
  };

  void change(Owner owner, long long bytes) {
    for (const std::size_t of :
         {static_cast<std::size_t>(owner), static_cast<std::size_t>(owners)}) {
      now_[of] += bytes;
      peak_[of] = std::max(peak_[of], now_[of]);
    }
  }

  std::atomic_flag busy_;
  std::array<Entry, 1 << 14> entries_{};
  std::size_t count_ = 0;
  std::array<long long, owners + 1> now_{}, peak_{}, built_{};
  bool begun_anew_ = false;
  long untracked_ = 0;
};
constinit Held held;

/// Counts the call and passes it on to libcudart.
template <class... A>
Error pass_on(Function function, Owner owner, A... arguments) {
  calls[function][owner].fetch_add(1, std::memory_order_relaxed);
  void* found = next[function].load(std::memory_order_acquire);
  if (!found) {
    found = dlsym(RTLD_NEXT, names[function]);
    next[function].store(found, std::memory_order_release);
  }
  return found ? reinterpret_cast<Error (*)(A...)>(found)(arguments...) : no_library;
}

/// As `pass_on`, for a function that puts an address of the device's into `*made`.
template <class... A>
Error allocate(Function function, const void* caller, std::size_t bytes, void** made, A... rest) {
  const Owner owner = owner_of(caller);
  const Error error = pass_on(function, owner, made, rest...);
  if (error == success) held.take(*made, bytes, owner);
  return error;
}

/// In the end, as one line of JSON, to the file that $ARENITE_CUDA_COUNTS names; a process that
/// this one began has a counter of its own, and comes first.
[[gnu::destructor]] void report() {
  const char* path = std::getenv("ARENITE_CUDA_COUNTS");
  std::FILE* file = path && *path ? std::fopen(path, "w") : nullptr;
  if (!file) return;
  std::fputs("{\"calls\": {", file);
  for (std::size_t f = 0; f < functions; ++f) {
    std::fprintf(file, "%s\"%s\": {", f == 0 ? "" : ", ", names[f]);
    for (std::size_t o = 0; o < owners; ++o)
      std::fprintf(file, "%s\"%s\": %ld", o == 0 ? "" : ", ", owner_names[o], calls[f][o].load());
    std::fputc('}', file);
  }
  const auto bytes = [&](const char* what, auto of) {
    std::fprintf(file, "\"%s\": {", what);
    for (std::size_t o = 0; o < owners; ++o)
      std::fprintf(file, "\"%s\": %lld, ", owner_names[o], of(o));
    std::fprintf(file, "\"all\": %lld}", of(owners));
  };
  std::fputs("}, ", file);
  bytes("peak_device_bytes", [](std::size_t o) { return held.peak(o); });
  std::fputs(", ", file);
  if (held.begun_anew()) {
    bytes("peak_device_bytes_while_building", [](std::size_t o) { return held.built(o); });
    std::fputs(", ", file);
  }
  bytes("device_bytes_left", [](std::size_t o) { return held.now(o); });
  std::fprintf(file, ", \"untracked\": %ld}\n", held.untracked());
  std::fclose(file);
}

struct PitchedPtr {  // cudaPitchedPtr
  void* ptr;
  std::size_t pitch, xsize, ysize;
};
struct Extent {  // cudaExtent
  std::size_t width, height, depth;
};

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void arenite_cuda_programs_are_built() { held.begin_anew(); }

Error cudaMalloc(void** made, std::size_t bytes) {
  return allocate(f_malloc, CALLER, bytes, made, bytes);
}

Error cudaMallocManaged(void** made, std::size_t bytes, unsigned flags) {
  return allocate(f_malloc_managed, CALLER, bytes, made, bytes, flags);
}

Error cudaMallocAsync(void** made, std::size_t bytes, Stream stream) {
  return allocate(f_malloc_async, CALLER, bytes, made, bytes, stream);
}

Error cudaMallocFromPoolAsync(void** made, std::size_t bytes, void* pool, Stream stream) {
  return allocate(f_malloc_pool, CALLER, bytes, made, bytes, pool, stream);
}

Error cudaMallocPitch(void** made, std::size_t* pitch, std::size_t width, std::size_t height) {
  const Owner owner = owner_of(CALLER);
  const Error error = pass_on(f_malloc_pitch, owner, made, pitch, width, height);
  if (error == success) held.take(*made, *pitch * height, owner);
  return error;
}

Error cudaMalloc3D(PitchedPtr* made, Extent extent) {
  const Owner owner = owner_of(CALLER);
  const Error error = pass_on(f_malloc_3d, owner, made, extent);
  if (error == success) held.take(made->ptr, made->pitch * extent.height * extent.depth, owner);
  return error;
}

Error cudaFree(void* at) {
  const Error error = pass_on(f_free, owner_of(CALLER), at);
  if (error == success) held.give_back(at);
  return error;
}

Error cudaFreeAsync(void* at, Stream stream) {
  const Error error = pass_on(f_free_async, owner_of(CALLER), at, stream);
  if (error == success) held.give_back(at);
  return error;
}

// Memory of the host's, and arrays for textures: only counted.
Error cudaMallocArray(void** made, const void* format, std::size_t width, std::size_t height,
                      unsigned flags) {
  return pass_on(f_malloc_array, owner_of(CALLER), made, format, width, height, flags);
}
Error cudaFreeArray(void* array) { return pass_on(f_free_array, owner_of(CALLER), array); }
Error cudaMallocHost(void** made, std::size_t bytes) {
  return pass_on(f_malloc_host, owner_of(CALLER), made, bytes);
}
Error cudaFreeHost(void* at) { return pass_on(f_free_host, owner_of(CALLER), at); }
Error cudaHostAlloc(void** made, std::size_t bytes, unsigned flags) {
  return pass_on(f_host_alloc, owner_of(CALLER), made, bytes, flags);
}
Error cudaHostRegister(void* at, std::size_t bytes, unsigned flags) {
  return pass_on(f_host_register, owner_of(CALLER), at, bytes, flags);
}
Error cudaHostUnregister(void* at) { return pass_on(f_host_unregister, owner_of(CALLER), at); }
}
