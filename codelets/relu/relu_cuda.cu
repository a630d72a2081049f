#include "codelets/cuda/kernel.hpp"

namespace arenite::codelets {
namespace {

template <class T>
void run_relu(const KernelCall& call) {
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  // The comparison lets NaN through.
  cuda::for_each(call, cuda::count_of(call),
                 [=] ARENITE_THREAD(std::int64_t i) { y[i] = x[i] <= 0 ? T{0} : x[i]; });
}

template <class T>
void run_relu_grad(const KernelCall& call) {
  const T *gradient = call.in<T>(0), *y = call.in<T>(1);
  T* dx = call.out<T>(0);
  cuda::for_each(call, cuda::count_of(call),
                 [=] ARENITE_THREAD(std::int64_t i) { dx[i] = y[i] <= 0 ? T{0} : gradient[i]; });
}

}  // namespace

void ARENITE_CUDA_KERNELS(relu)(runtime::KernelTable& kernels) {
  kernels.add("relu", cuda::elementwise(run_relu<float>, run_relu<double>));
  kernels.add("relu_grad", cuda::elementwise(run_relu_grad<float>, run_relu_grad<double>));
}

}  // namespace arenite::codelets
