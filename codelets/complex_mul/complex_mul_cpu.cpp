#include "codelets/strides.hpp"
#include "codelets/words.hpp"

#include <algorithm>

namespace arenite::codelets {
namespace {

/// The axes of a's numbers, and how far a and b go along each: b stays where it is repeated.
struct State {
  Nest<2> kept, repeated;  ///< but the innermost, by whether b goes on
  Nest<2> outer;           ///< both
  Axis<2> inner;
  std::int64_t numbers = 0, numbers_b = 0;
  bool conjugate = false;
};

State state_of(const OpView& op, const graph::Value& b) {
  const Shape& a = op.operand(0).shape;
  const Strides in_a(op.operand(0)), in_b = Strides::repeated(b);
  State state{.numbers = a.elements() / 2,
              .numbers_b = b.shape.elements() / 2,
              .conjugate = op.integer("conjugate") != 0};
  for (int i = 0; i + 1 < a.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    state.outer.add({a[i], {in_a.axis[axis], in_b.axis[axis]}});
  }
  state.inner = state.outer.take_innermost([](const auto&) { return true; });
  if (state.inner.size == 1) state.inner.step = {2, 2};  // a single number
  for (const Axis<2>& axis : state.outer.axes())
    (axis.step[1] == 0 ? state.repeated : state.kept).add(axis);
  return state;
}

State mul_state(const OpView& op) { return state_of(op, op.operand(1)); }
State grad_right_state(const OpView& op) { return state_of(op, op.result(0)); }

/// `sign`: −1 for the conjugates of b. y may lie in a's place.
template <class T, bool repeats>
void multiply(const T* a, const T* b, std::int64_t count, T sign, T* y) noexcept {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T real = b[repeats ? 0 : 2 * i], imaginary = sign * b[repeats ? 1 : 2 * i + 1];
    const T a_real = a[2 * i], a_imaginary = a[2 * i + 1];
    y[2 * i] = a_real * real - a_imaginary * imaginary;
    y[2 * i + 1] = a_real * imaginary + a_imaginary * real;
  }
}

template <class T>
void run_mul(const KernelCall& call, const State& state) {
  if (state.numbers == 0) return;
  const T* a = call.in<T>(0);
  const T* b = call.in<T>(1);
  T* y = call.out<T>(0);
  const T sign = state.conjugate ? -1 : 1;
  const auto run = state.inner.step[1] == 0 ? multiply<T, true> : multiply<T, false>;
  state.outer.for_each({0, 0}, [&](const auto& at) {
    run(a + at[0], b + at[1], state.inner.size, sign, y + at[0]);
  });
}

/// So many sums side by side: a fixed number, so that no machine's vectors change their order.
constexpr std::int64_t lanes = 16;

struct Sums {
  double real[lanes] = {}, imaginary[lanes] = {};

  /// Adds gradient · conj(a) of `count` numbers, at most one a lane.
  template <class T>
  void add(const T* gradient, const T* a, std::int64_t count) noexcept {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const auto g_real = static_cast<double>(gradient[2 * i]),
                 g_imaginary = static_cast<double>(gradient[2 * i + 1]),
                 a_real = static_cast<double>(a[2 * i]),
                 a_imaginary = static_cast<double>(a[2 * i + 1]);
      real[i] += g_real * a_real + g_imaginary * a_imaginary;
      imaginary[i] += g_imaginary * a_real - g_real * a_imaginary;
    }
  }

  void fold() noexcept {
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
      for (std::int64_t i = 0; i < half; ++i)
        real[i] += real[i + half], imaginary[i] += imaginary[i + half];
    }
  }

  template <class T>
  void write(std::int64_t count, double sign, T* to) const noexcept {
    for (std::int64_t i = 0; i < count; ++i) {
      to[2 * i] = static_cast<T>(real[i]);
      to[2 * i + 1] = static_cast<T>(sign * imaginary[i]);
    }
  }
};

/// In double, and in an order that follows from the shapes alone.
template <class T>
void run_grad_right(const KernelCall& call, const State& state) {
  const T* gradient = call.in<T>(0);
  const T* a = call.in<T>(1);
  T* db = call.out<T>(0);
  if (state.numbers == 0) {
    std::fill_n(db, 2 * state.numbers_b, T{0});
    return;
  }
  const double sign = state.conjugate ? -1 : 1;
  const std::int64_t size = state.inner.size;
  state.kept.for_each({0, 0}, [&](const auto& kept) {
    const std::int64_t from = kept[0], to = kept[1];
    if (state.inner.step[1] == 0) {
      Sums sums;
      state.repeated.for_each({from, 0}, [&](const auto& at) {
        for (std::int64_t i = 0; i < size; i += lanes) {
          const std::int64_t first = at[0] + 2 * i;
          sums.add(gradient + first, a + first, std::min(lanes, size - i));
        }
      });
      sums.fold();
      sums.write(1, sign, db + to);
      return;
    }
    for (std::int64_t i = 0; i < size; i += lanes) {
      const std::int64_t count = std::min(lanes, size - i);
      Sums sums;
      state.repeated.for_each({from + 2 * i, 0}, [&](const auto& at) {
        const std::int64_t first = at[0];
        sums.add(gradient + first, a + first, count);
      });
      sums.write(count, sign, db + to + 2 * i);
    }
  });
}

}  // namespace

std::vector<Kernel> complex_mul_kernels() {
  return {{.name = "plain", .prepare = prepare_real<mul_state, run_mul<float>, run_mul<double>>}};
}

std::vector<Kernel> complex_mul_grad_right_kernels() {
  return {
      {.name = "plain",
       .prepare = prepare_real<grad_right_state, run_grad_right<float>, run_grad_right<double>>}};
}

}  // namespace arenite::codelets
