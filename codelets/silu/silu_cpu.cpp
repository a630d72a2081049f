#include "codelets/rows.hpp"
#include "codelets/softmax_cross_entropy/exponential.hpp"

#include <cmath>
#include <limits>

namespace arenite::codelets {
namespace {

/// exp(x) for x of at most 0.
float decayed(float x) noexcept { return exponential(x); }
double decayed(double x) noexcept { return std::exp(x); }

/// Sigmoids of x and of −x, which is 1 − the first: from exp(−|x|), which cannot overflow, neither
/// loses digits.
template <class T>
struct Sigmoids {
  T of_x, of_minus_x;

  explicit Sigmoids(T x) noexcept {
    const T small = decayed(x < 0 ? x : -x), larger = 1 / (1 + small), smaller = small * larger;
    of_x = x < 0 ? smaller : larger;
    of_minus_x = x < 0 ? larger : smaller;
  }
};

/// Infinities times 0 would be NaN; a NaN stays one.
template <class T>
T finite(T x) noexcept {
  constexpr T most = std::numeric_limits<T>::max();
  const T above = x < -most ? -most : x;
  return above > most ? most : above;
}

template <class T>
void run_silu(const KernelCall& call) {
  const auto& state = *static_cast<const ElementRows*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    const T* x = call.in<T>(0) + state.last.at(r);
    T* y = call.out<T>(0) + state.out.at(r);
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) {
      const T value = x[i], sigmoid = Sigmoids<T>(value).of_x;
      y[i] = (value < 0 ? finite(value) : value) * sigmoid;
    }
  }
  state.out.zero_halo(call.out<T>(0));
}

/// d(x·σ(x))/dx = σ(x)·(1 + x·σ(−x))
template <class T>
void run_silu_grad(const KernelCall& call) {
  const auto& state = *static_cast<const ElementRows*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    const T* gradient = call.in<T>(0) + state.first.at(r);
    const T* x = call.in<T>(1) + state.last.at(r);
    T* dx = call.out<T>(0) + state.out.at(r);
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) {
      const T value = finite(x[i]);
      const Sigmoids<T> sigmoid(value);
      dx[i] = gradient[i] * (sigmoid.of_x * (1 + value * sigmoid.of_minus_x));
    }
  }
  state.out.zero_halo(call.out<T>(0));
}

}  // namespace

std::vector<Kernel> silu_kernels() { return {elementwise<run_silu<float>, run_silu<double>>()}; }
std::vector<Kernel> silu_grad_kernels() {
  return {elementwise<run_silu_grad<float>, run_silu_grad<double>>()};
}

}  // namespace arenite::codelets
