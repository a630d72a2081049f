#include "codelets/cuda/kernel.hpp"
#include "codelets/cuda/sums.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void run(const runtime::KernelCall& call) {
  cuda::run_sums(call, *static_cast<const cuda::Sums*>(call.state), call.in<T>(0), call.out<T>(0));
}

runtime::PreparedKernel choose(const graph::OpView& op) {
  auto sums = std::make_shared<const cuda::Sums>(cuda::sums_to(op.operand(0), op.result(0).shape));
  return {op.operand(0).type == DType::float64 ? run<double> : run<float>, std::move(sums)};
}

}  // namespace

void ARENITE_CUDA_KERNELS(sum_to)(runtime::KernelTable& kernels) {
  kernels.add("sum_to", cuda::own(choose, [](const graph::OpView& op) {
                return cuda::sums_to(op.operand(0), op.result(0).shape).chunks.workspace();
              }));
}

}  // namespace arenite::codelets
