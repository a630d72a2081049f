// GPU kernels whose result is elements of operand 0 in another order, some of them repeated.
#pragma once

#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/offsets.hpp"

namespace arenite::codelets::cuda {

template <class T>
static void run_gather(const KernelCall& call) {
  const Offsets<1> offsets = *static_cast<const Offsets<1>*>(call.state);
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  for_each(call, offsets.count(),
           [=] ARENITE_THREAD(std::int64_t i) { y[i] = x[offsets.at(i).of[0]]; });
}

/// `offsets_of` gives where each element of the result lies in operand 0, by an op.
template <auto offsets_of>
static Kernel gathering() {
  return copying<offsets_of>(run_gather<std::uint8_t>, run_gather<std::uint32_t>,
                             run_gather<std::uint64_t>);
}

}  // namespace arenite::codelets::cuda
