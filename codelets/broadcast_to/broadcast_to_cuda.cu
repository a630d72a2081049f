#include "codelets/cuda/gather.hpp"

namespace arenite::codelets {
namespace {

cuda::Offsets<1> offsets_of(const OpView& op) {
  const Strides x = Strides::repeated(op.operand(0));
  const Shape& y = op.result(0).shape;
  cuda::Offsets<1> offsets;
  for (int i = 0; i < y.rank(); ++i) offsets.add(y[i], {x.axis[static_cast<std::size_t>(i)]});
  return offsets;
}

}  // namespace

void ARENITE_CUDA_KERNELS(broadcast_to)(runtime::KernelTable& kernels) {
  kernels.add("broadcast_to", cuda::gathering<offsets_of>());
}

}  // namespace arenite::codelets
