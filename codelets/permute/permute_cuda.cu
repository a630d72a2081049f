#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/offsets.hpp"
#include "codelets/strides.hpp"

namespace arenite::codelets {
namespace {

/// Where each element of the result lies in x.
cuda::Offsets offsets_of(const OpView& op) {
  const Strides x(op.operand(0));
  cuda::Offsets offsets;
  for (const std::int64_t from : op.attributes().integers("dims"))
    offsets.add(op.operand(0).shape[static_cast<int>(from)],
                x.axis[static_cast<std::size_t>(from)]);
  return offsets;
}

template <class T>
void run(const KernelCall& call, const cuda::Offsets& offsets) {
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  cuda::for_each(call, offsets.count(),
                 [=] ARENITE_THREAD(std::int64_t i) { y[i] = x[offsets.at(i)]; });
}

}  // namespace

void ARENITE_CUDA_KERNELS(permute)(runtime::KernelTable& kernels) {
  kernels.add(
      "permute",
      cuda::copying<offsets_of, run<std::uint8_t>, run<std::uint32_t>, run<std::uint64_t>>());
}

}  // namespace arenite::codelets
