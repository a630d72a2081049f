// The GPU kernels of operators that are `pairwise`.
#pragma once

#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/offsets.hpp"

namespace arenite::codelets::cuda {

inline Offsets<2> pairwise_offsets(const OpView& op) {
  const Strides a(op.operand(0)), b = Strides::repeated(op.operand(1));
  Offsets<2> offsets;
  for (int i = 0; i < op.operand(0).shape.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    offsets.add(op.operand(0).shape[i], {a.axis[axis], b.axis[axis]});
  }
  return offsets;
}

/// `Operation` gives T from two of T, on the device too. The result may lie on a.
template <class Operation, class T>
static void run_pairwise(const KernelCall& call) {
  const Offsets<2> offsets = *static_cast<const Offsets<2>*>(call.state);
  const T *a = call.in<T>(0), *b = call.in<T>(1);
  T* y = call.out<T>(0);
  for_each(call, offsets.count(), [=] ARENITE_THREAD(std::int64_t i) {
    const auto at = offsets.at(i);
    y[i] = Operation()(a[at.of[0]], b[at.of[1]]);
  });
}

template <class Operation>
static Kernel pairwise_kernel() {
  return own(prepare_real<pairwise_offsets, run_pairwise<Operation, float>,
                          run_pairwise<Operation, double>>);
}

}  // namespace arenite::codelets::cuda
