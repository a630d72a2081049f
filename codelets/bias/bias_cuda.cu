#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets {
namespace {

/// All pixels' channels, whatever axes the pixels have.
cuda::Sums sums_of(const OpView& op) {
  const Shape& gradient = op.operand(0).shape;
  const std::int64_t channels = gradient.at(-1);
  cuda::Sums sums;
  sums.sums.add(channels, {1});
  sums.terms.add(channels > 0 ? gradient.elements() / channels : 0, {channels});
  sums.deal_out();
  return sums;
}

void run_bias_grad(const KernelCall& call) {
  cuda::run_sums(call, *static_cast<const cuda::Sums*>(call.state), call.in<float>(0),
                 call.out<float>(0));
}

}  // namespace

void ARENITE_CUDA_KERNELS(bias)(runtime::KernelTable& kernels) {
  kernels.add("bias_grad", cuda::own(prepare<sums_of, run_bias_grad>, cuda::workspace_of<sums_of>));
}

}  // namespace arenite::codelets
