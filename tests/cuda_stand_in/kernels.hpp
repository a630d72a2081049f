// Kernels that nvcc compiled, run as their PTX says.
#pragma once

#include "tests/cuda_stand_in/state.hpp"
#include "tests/ptx/program.hpp"

#include <tuple>
#include <vector>

namespace cuda_stand_in {

/// Whether they run at all.
bool kernels_run();

/// What a launch was given.
struct Launch {
  const ptx::Entry* entry = nullptr;
  int device = 0;
  std::uint32_t blocks = 0, threads = 0;
  std::vector<std::byte> parameters;
  mutable unsigned times = 0;  ///< that it ran, in any stream

  bool operator<(const Launch& other) const {
    return std::tie(entry, device, blocks, threads, parameters) <
           std::tie(other.entry, other.device, other.blocks, other.threads, other.parameters);
  }
};

/// Where the compiler has put what it made of a source file.
Binary* binary_at(const void* wrapper);

/// Of a kernel. The same launch again is the same object, so that steps allocate nothing.
const Launch& launch_of(const Kernel& kernel, int device, dim3 grid, dim3 block, std::size_t shared,
                        void** arguments);

}  // namespace cuda_stand_in
