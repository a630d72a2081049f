#include "codelets/cuda/kernel.hpp"

#include <cmath>
#include <limits>

namespace arenite::codelets {
namespace {

/// Sigmoids of x and of −x, which is 1 − the first: from exp(−|x|), which cannot overflow, neither
/// loses digits.
template <class T>
struct Sigmoids {
  T of_x, of_minus_x;

  ARENITE_GPU explicit Sigmoids(T x) {
    const T small = exp(x < 0 ? x : -x), larger = 1 / (1 + small), smaller = small * larger;
    of_x = x < 0 ? smaller : larger;
    of_minus_x = x < 0 ? larger : smaller;
  }

  ARENITE_GPU static T exp(T x) { return std::exp(x); }
};

/// Infinities times 0 would be NaN; a NaN stays one.
template <class T>
ARENITE_GPU T finite(T x, T most) {
  const T above = x < -most ? -most : x;
  return above > most ? most : above;
}

template <class T>
void run_silu(const KernelCall& call) {
  constexpr T most = std::numeric_limits<T>::max();
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  cuda::for_each(call, cuda::count_of(call), [=] ARENITE_THREAD(std::int64_t i) {
    const T value = x[i];
    y[i] = (value < 0 ? finite(value, most) : value) * Sigmoids<T>(value).of_x;
  });
}

/// d(x·σ(x))/dx = σ(x)·(1 + x·σ(−x))
template <class T>
void run_silu_grad(const KernelCall& call) {
  constexpr T most = std::numeric_limits<T>::max();
  const T *gradient = call.in<T>(0), *x = call.in<T>(1);
  T* dx = call.out<T>(0);
  cuda::for_each(call, cuda::count_of(call), [=] ARENITE_THREAD(std::int64_t i) {
    const T value = finite(x[i], most);
    const Sigmoids<T> sigmoid(value);
    dx[i] = gradient[i] * (sigmoid.of_x * (1 + value * sigmoid.of_minus_x));
  });
}

}  // namespace

void ARENITE_CUDA_KERNELS(silu)(runtime::KernelTable& kernels) {
  kernels.add("silu", cuda::elementwise(run_silu<float>, run_silu<double>));
  kernels.add("silu_grad", cuda::elementwise(run_silu_grad<float>, run_silu_grad<double>));
}

}  // namespace arenite::codelets
