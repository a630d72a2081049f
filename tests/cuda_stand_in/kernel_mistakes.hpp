// Kernels with mistakes, which the stand-in is to find.
#pragma once

#include <cstdint>
#include <vector>

namespace cuda_stand_in {

enum class Mistake {
  none,
  writes_beyond,      ///< the end of its memory
  writes_the_same,    ///< in all threads at once
  leaves_a_barrier,   ///< to some threads of a block
  begins_too_early,   ///< and waits for no grid before it
  reads_host_memory,  ///< that is not pinned
};

/// What the kernel leaves behind in memory of the device, of zeros: of `words` words.
std::vector<std::uint32_t> run_with(Mistake mistake, std::uint32_t words);

}  // namespace cuda_stand_in
