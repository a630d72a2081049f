#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void run(const KernelCall& call) {
  cuda::run_sums(call, *static_cast<const cuda::Sums*>(call.state), call.in<T>(0), call.out<T>(0));
}

cuda::Sums sums_of(const OpView& op) { return cuda::sums_to(op.operand(0), op.result(0).shape); }

}  // namespace

void ARENITE_CUDA_KERNELS(sum_to)(runtime::KernelTable& kernels) {
  kernels.add("sum_to", cuda::own(prepare_real<sums_of, run<float>, run<double>>,
                                  cuda::workspace_of<sums_of>));
}

}  // namespace arenite::codelets
