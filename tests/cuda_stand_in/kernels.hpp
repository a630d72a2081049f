// Kernels that nvcc compiled, run as their PTX says.
#pragma once

#include "tests/cuda_stand_in/state.hpp"
#include "tests/ptx/program.hpp"

#include <compare>
#include <vector>

namespace cuda_stand_in {

/// Whether they run at all.
bool kernels_run();

/// What a launch was given.
struct Launch {
  const ptx::Entry* entry = nullptr;
  int device = 0;
  std::uint32_t blocks = 0, threads = 0;
  bool early = false;  ///< begins before what stands before it has ended
  std::vector<std::byte> parameters;

  auto operator<=>(const Launch&) const = default;
};

/// Where the compiler has put what it made of a source file.
Binary* binary_at(const void* wrapper);
/// PTX that was made while the program ran.
Binary* binary_of(const char* ptx);

/// Of the PTX that would run on a GPU newer than all it was compiled for: 90 of sm_90; 0 of none
/// that can be read.
int architecture_of(const Kernel& kernel);

/// How one was configured.
struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
  bool early = false;
};

/// Of a kernel. The same launch again is the same object, so that steps allocate nothing.
const Launch& launch_of(const Kernel& kernel, int device, const Configuration& as,
                        void** arguments);

}  // namespace cuda_stand_in
