// Our own GPU kernels: functions of an index, which a grid of threads calls once for each element.
//
// <op>_cuda.cu is CUDA to nvcc. To a C++ compiler it is plain C++ whose grid is a loop, so that
// tests run the same functions on machines without a GPU (tests/cuda_kernels_test.cpp). What starts
// a grid is static, since a program may hold both.
#pragma once

#include "codelets/cuda/qualifiers.hpp"
#include "codelets/words.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#include "codelets/cuda/libraries.hpp"
#include "src/base/early_launch.hpp"
#endif

namespace arenite::codelets::cuda {

#ifdef __CUDACC__
/// The words of a call that are to keep a grid from persistent state; none where it writes none.
struct Guard {
  const volatile unsigned long long *status = nullptr, *failed = nullptr;

  explicit Guard(const KernelCall& call) {
    static_assert(sizeof(runtime::StatusWord) == sizeof(unsigned long long));
    if (call.failed == nullptr) return;
    status = reinterpret_cast<const volatile unsigned long long*>(call.status);
    failed = reinterpret_cast<const volatile unsigned long long*>(call.failed);
  }
  __device__ bool closed() const { return status != nullptr && (*status != 0 || *failed != 0); }
};

constexpr int threads_of_each = 256;
constexpr std::int64_t blocks_of_each(std::int64_t count) {
  constexpr std::int64_t most = 1 << 16;  // a thread takes more than one beyond
  return std::min((count + threads_of_each - 1) / threads_of_each, most);
}

template <class F>
__global__ void call_each(std::int64_t count, F f, Guard guard) {
  arenite::cuda::wait_for_earlier();
  if (guard.closed()) return;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  // Nearly always once: unrolled, it would begin with a division to count how often.
  ARENITE_KEEP_ROLLED
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    f(i);
  }
}
#endif

/// Of grids that are loops: from the first index on, or from the last one. Nobody may count on an
/// order, and tests try both.
inline bool& from_the_first() {
  static bool first = false;
  return first;
}

/// Of grids that are loops: while this is set they are counted instead, and look at nothing.
struct GridCount {
  bool instead = false;
  int count = 0;
};
inline GridCount& grid_count() {
  static GridCount counted;
  return counted;
}

#ifdef __CUDACC__
/// Launches a kernel in so many blocks, and notes it where that fails.
template <class... Parameters, class... Arguments>
static void launch(const KernelCall& call, std::int64_t blocks, int threads,
                   void (*kernel)(Parameters...), Arguments... arguments) {
  if (blocks == 0) return;
  const cudaError_t error = arenite::cuda::launch_early(static_cast<cudaStream_t>(call.stream),
                                                        blocks, threads, kernel, arguments...);
  if (error != cudaSuccess)
    note_failure("launch of a GPU kernel", error, cudaGetErrorString(error));
}
#else
/// Whether a grid is not to run: where its call is to leave persistent state alone, or is counted.
inline bool leaves_out(const KernelCall& call) {
  if (grid_count().instead) {
    ++grid_count().count;
    return true;
  }
  return call.failed != nullptr && (call.failed->load() != runtime::StatusWord::ok ||
                                    call.status->load() != runtime::StatusWord::ok);
}
#endif

/// Calls f(i) for each i in [0, count), in any order and many at once, behind what the call's
/// stream holds; returns without waiting. f is copied to the device, and the addresses in it are
/// the device's. Calls nothing where the call is to leave persistent state alone.
template <class F>
static void for_each(const KernelCall& call, std::int64_t count, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>);
#ifdef __CUDACC__
  launch(call, blocks_of_each(count), threads_of_each, call_each<F>, count, f, Guard(call));
#else
  if (count == 0 || leaves_out(call)) return;
  for (std::int64_t i = 0; i < count; ++i) f(from_the_first() ? i : count - 1 - i);
#endif
}

}  // namespace arenite::codelets::cuda
