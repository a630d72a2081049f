#include "codelets/cuda/gather.hpp"

namespace arenite::codelets {
namespace {

cuda::Offsets<1> offsets_of(const OpView& op) {
  const Strides x(op.operand(0));
  cuda::Offsets<1> offsets;
  for (const std::int64_t from : op.attributes().integers("dims"))
    offsets.add(op.operand(0).shape[static_cast<int>(from)],
                {x.axis[static_cast<std::size_t>(from)]});
  return offsets;
}

}  // namespace

void ARENITE_CUDA_KERNELS(permute)(runtime::KernelTable& kernels) {
  kernels.add("permute", cuda::gathering<offsets_of>());
}

}  // namespace arenite::codelets
