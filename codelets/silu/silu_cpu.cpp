#include "codelets/prepare.hpp"
#include "codelets/rows.hpp"
#include "codelets/softmax_cross_entropy/exponential.hpp"

#include <cmath>
#include <limits>

namespace arenite::codelets {
namespace {

/// Where the runs of the first operand, of the last one and of the result lie.
struct State {
  Rows first, x, out;
};

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
void run_silu(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    const T* x = call.in<T>(0) + state.x.at(r);
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
void run_silu_grad(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const std::int64_t length = state.out.length();
  for (std::int64_t r = 0; r < state.out.count(); ++r) {
    const T* gradient = call.in<T>(0) + state.first.at(r);
    const T* x = call.in<T>(1) + state.x.at(r);
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

runtime::Kernel plain(runtime::KernelFunction of_floats, runtime::KernelFunction of_doubles) {
  const auto prepare = [=](const graph::OpView& op) -> runtime::PreparedKernel {
    const graph::Value &first = op.operand(0), &x = op.operand(op.operand_count() - 1),
                       &out = op.result(0);
    const bool by_row = any_halo({&first, &x, &out});
    return {out.type == DType::float64 ? of_doubles : of_floats,
            std::make_shared<const State>(
                State{Rows(first, by_row), Rows(x, by_row), Rows(out, by_row)})};
  };
  return {
      .name = "plain", .prepare = prepare, .wanted_halo = skipped_halo<0, 1>, .writes_halo = true};
}

}  // namespace

std::vector<runtime::Kernel> silu_kernels() { return {plain(run_silu<float>, run_silu<double>)}; }
std::vector<runtime::Kernel> silu_grad_kernels() {
  return {plain(run_silu_grad<float>, run_silu_grad<double>)};
}

}  // namespace arenite::codelets
