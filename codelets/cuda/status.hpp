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

/// Reports what fault() of `checked` is, unless that is 0.
template <class Checked>
static void report_fault(const KernelCall& call, const Checked& checked) {
  runtime::StatusWord* status = call.status;
  const std::uint32_t op = call.op;
  for_each(call, 1, [=] ARENITE_THREAD(std::int64_t) {
    if (const std::uint32_t code = checked.fault(); code != 0) report(status, op, code);
  });
}

}  // namespace arenite::codelets::cuda
