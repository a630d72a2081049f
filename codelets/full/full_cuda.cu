#include "codelets/cuda/kernel.hpp"
#include "src/base/element.hpp"

namespace arenite::codelets {
namespace {

template <class T>
struct State {
  std::int64_t count;
  T value;
};

template <class T>
void run(const KernelCall& call) {
  const State<T> state = *static_cast<const State<T>*>(call.state);
  T* y = call.out<T>(0);
  cuda::for_each(call, state.count, [=] ARENITE_THREAD(std::int64_t i) { y[i] = state.value; });
}

template <class T>
PreparedKernel prepare_for(const OpView& op) {
  return {run<T>, std::make_shared<const State<T>>(
                      State<T>{op.result(0).shape.elements(), static_cast<T>(op.real("value"))})};
}

PreparedKernel choose(const OpView& op) {
  return with_element(op.result(0).type,
                      [&](auto zero) { return prepare_for<decltype(zero)>(op); });
}

}  // namespace

void ARENITE_CUDA_KERNELS(full)(runtime::KernelTable& kernels) {
  kernels.add("full", cuda::own(choose));
}

}  // namespace arenite::codelets
