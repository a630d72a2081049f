// Faults that only a step can find, reported by a thread of a grid.
#pragma once

#include "codelets/cuda/grid.hpp"

namespace arenite::codelets::cuda {

/// As StatusWord::report. The word lies in the device's memory.
ARENITE_GPU inline void report(runtime::StatusWord* status, std::uint32_t op, std::uint32_t code) {
#ifdef __CUDA_ARCH__
  static_assert(sizeof(runtime::StatusWord) == sizeof(unsigned long long));
  auto* word = reinterpret_cast<unsigned long long*>(status);
  const unsigned long long mine = (static_cast<unsigned long long>(op) + 1) << 32 | code;
  unsigned long long seen = *reinterpret_cast<volatile unsigned long long*>(word);
  while (seen == 0 || mine < seen) {
    const unsigned long long found = atomicCAS(word, seen, mine);
    if (found == seen) return;
    seen = found;
  }
#else
  status->report(op, code);
#endif
}

}  // namespace arenite::codelets::cuda
