#include "codelets/cuda/kernel.hpp"
#include "src/base/element.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void run(const KernelCall& call) {
  using Sum = Wrapping<T>;
  const T *total = call.in<T>(0), *value = call.in<T>(1);
  T* sum = call.out<T>(0);
  cuda::for_each(call, cuda::count_of(call), [=] ARENITE_THREAD(std::int64_t i) {
    sum[i] = static_cast<T>(static_cast<Sum>(total[i]) + static_cast<Sum>(value[i]));
  });
}

PreparedKernel choose(const OpView& op) {
  auto state = std::make_shared<const cuda::Elements>(cuda::elements_of(op));
  return {with_element(op.operand(0).type, [](auto zero) { return &run<decltype(zero)>; }), state};
}

}  // namespace

void ARENITE_CUDA_KERNELS(accumulate)(runtime::KernelTable& kernels) {
  kernels.add("accumulate", cuda::own(choose));
}

}  // namespace arenite::codelets
