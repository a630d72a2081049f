#include "codelets/cuda/kernel.hpp"

namespace arenite::codelets {
namespace {

/// `Sum` is the type to add in: unsigned for integers, which wrap around.
template <class T, class Sum>
void run(const runtime::KernelCall& call) {
  T* total = call.inout<T>(0);
  const T* value = call.in<T>(1);
  cuda::for_each(call, cuda::count_of(call), [=] ARENITE_THREAD(std::int64_t i) {
    total[i] = static_cast<T>(static_cast<Sum>(total[i]) + static_cast<Sum>(value[i]));
  });
}

runtime::PreparedKernel choose(const graph::OpView& op) {
  auto state = std::make_shared<const cuda::Elements>(cuda::elements_of(op));
  switch (op.operand(0).type) {
    case DType::float64:
      return {run<double, double>, state};
    case DType::int64:
      return {run<std::int64_t, std::uint64_t>, state};
    default:
      return {run<float, float>, state};
  }
}

}  // namespace

void ARENITE_CUDA_KERNELS(accumulate)(runtime::KernelTable& kernels) {
  kernels.add("accumulate", cuda::own(choose));
}

}  // namespace arenite::codelets
