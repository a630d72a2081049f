// Grids whose threads work together: blocks of them share memory, and wait for each other.
//
// What a block does is a struct: `threads` and `Shared` say what it has, and operator()(block,
// shared) runs in phases, block.each(f): f(t) for each thread t, and nobody goes on before all are
// done. What a thread keeps from one phase to the next lies in a PerThread. To a C++ compiler a
// phase is a loop, in either order (from_the_first), so that threads of a phase that count on each
// other are found by tests on machines without a GPU.
#pragma once

#include "codelets/cuda/grid.hpp"

#include <array>
#include <cstring>

namespace arenite::codelets::cuda {

template <int count>
struct Block {
  std::int32_t index;  ///< among the grid's blocks

  template <class F>
  ARENITE_GPU void each(F f) const {
#ifdef __CUDA_ARCH__
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
#else
    for (int t = 0; t < count; ++t) f(from_the_first() ? t : count - 1 - t);
#endif
  }
};

/// A T of each of a block's threads; in registers, where T's size is known to nobody else.
template <class T, int count>
class PerThread {
 public:
#ifdef __CUDA_ARCH__
  ARENITE_GPU T& operator[](int) { return mine_; }

 private:
  T mine_;
#else
  ARENITE_GPU PerThread() {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memset(static_cast<void*>(all_.data()), 0xff, sizeof(all_));  // NaN, as floats
  }
  ARENITE_GPU T& operator[](int thread) { return all_[static_cast<std::size_t>(thread)]; }

 private:
  std::array<T, count> all_;
#endif
};

/// How many blocks a multiprocessor is to have registers for, where a program says it; else 0.
template <class Program>
constexpr int resident_blocks() {
  if constexpr (requires { Program::resident; })
    return Program::resident;
  else
    return 0;
}

#ifdef __CUDACC__
template <class Program>
__global__ void __launch_bounds__(Program::threads, resident_blocks<Program>())
    run_block(Program program, Guard guard) {
  arenite::cuda::wait_for_earlier();
  // Asked by all, so that none waits for one that has left.
  if (__syncthreads_or(guard.closed() ? 1 : 0) != 0) return;
  __shared__ typename Program::Shared shared;
  program(Block<Program::threads>{static_cast<std::int32_t>(blockIdx.x)}, shared);
}
#endif

/// Runs program(block, shared) for so many blocks, as `for_each` runs functions.
template <class Program>
static void for_each_block(const KernelCall& call, std::int64_t blocks, const Program& program) {
  static_assert(std::is_trivially_copyable_v<Program>);
  static_assert(sizeof(typename Program::Shared) <= 48 * 1024, "more takes a special launch");
#ifdef __CUDACC__
  launch(call, blocks, Program::threads, run_block<Program>, program, Guard(call));
#else
  if (blocks == 0 || leaves_out(call)) return;
  typename Program::Shared shared;
  for (std::int64_t i = 0; i < blocks; ++i) {
    std::memset(static_cast<void*>(&shared), 0xff, sizeof(shared));
    program(Block<Program::threads>{static_cast<std::int32_t>(i)}, shared);
  }
#endif
}

}  // namespace arenite::codelets::cuda
