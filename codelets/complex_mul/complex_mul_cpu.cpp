#include "codelets/prepare.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace arenite::codelets {
namespace {

using graph::OpView;

/// Elements from one number to the next in a, and in b: 0 where b has the same one again.
struct Axis {
  std::int64_t size = 1, a = 2, b = 2;
};

/// The axes of a's numbers, as few as possible: neighbours along which b goes on, or stays, are
/// one.
struct State {
  std::vector<Axis> kept, repeated;  ///< but the innermost, each outermost first
  std::vector<Axis> outer;           ///< both
  Axis inner;
  std::int64_t numbers = 0, numbers_b = 0;
  DType type = DType::float32;
  bool conjugate = false;
};

State state_of(const OpView& op, const graph::Value& a, const Shape& b) {
  std::vector<Axis> axes;  // innermost first
  std::int64_t step_a = 2, step_b = 2;
  for (int i = a.shape.rank() - 2; i >= 0; --i) {
    const std::int64_t size = a.shape[i];
    if (size == 1) continue;
    const Axis axis{size, step_a, b[i] == 1 ? 0 : step_b};
    step_a *= size;
    step_b *= b[i];
    if (!axes.empty() && (axes.back().b == 0) == (axis.b == 0)) {
      axes.back().size *= size;
    } else {
      axes.push_back(axis);
    }
  }
  State state{.numbers = a.shape.elements() / 2,
              .numbers_b = b.elements() / 2,
              .type = a.type,
              .conjugate = op.integer("conjugate") != 0};
  if (axes.empty()) return state;
  state.inner = axes.front();
  state.outer.assign(axes.rbegin(), axes.rend() - 1);
  for (const Axis& axis : state.outer) (axis.b == 0 ? state.repeated : state.kept).push_back(axis);
  return state;
}

State mul_state(const OpView& op) { return state_of(op, op.operand(0), op.operand(1).shape); }
State grad_right_state(const OpView& op) { return state_of(op, op.operand(0), op.result(0).shape); }

/// Calls f(offset in a, offset in b) for every index of axes that are not empty, in row-major
/// order.
template <class F>
void for_each_index(std::span<const Axis> axes, F f) {
  std::array<std::int64_t, Shape::max_rank> index{};
  std::int64_t a = 0, b = 0;
  while (true) {
    f(a, b);
    std::size_t i = axes.size();
    while (true) {
      if (i == 0) return;
      const Axis& axis = axes[--i];
      a += axis.a, b += axis.b;
      if (++index[i] < axis.size) break;
      a -= axis.size * axis.a, b -= axis.size * axis.b;
      index[i] = 0;
    }
  }
}

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
void run_mul(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  if (state.numbers == 0) return;
  const T* a = call.in<T>(0);
  const T* b = call.in<T>(1);
  T* y = call.out<T>(0);
  const T sign = state.conjugate ? -1 : 1;
  const auto run = state.inner.b == 0 ? multiply<T, true> : multiply<T, false>;
  for_each_index(state.outer, [&](std::int64_t at_a, std::int64_t at_b) {
    run(a + at_a, b + at_b, state.inner.size, sign, y + at_a);
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
void run_grad_right(const runtime::KernelCall& call) {
  const State& state = *static_cast<const State*>(call.state);
  const T* gradient = call.in<T>(0);
  const T* a = call.in<T>(1);
  T* db = call.out<T>(0);
  if (state.numbers == 0) {
    std::fill_n(db, 2 * state.numbers_b, T{0});
    return;
  }
  const double sign = state.conjugate ? -1 : 1;
  const std::int64_t size = state.inner.size;
  for_each_index(state.kept, [&](std::int64_t from, std::int64_t to) {
    if (state.inner.b == 0) {
      Sums sums;
      for_each_index(state.repeated, [&](std::int64_t at, std::int64_t) {
        for (std::int64_t i = 0; i < size; i += lanes) {
          const std::int64_t first = from + at + 2 * i;
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
      for_each_index(state.repeated, [&](std::int64_t at, std::int64_t) {
        const std::int64_t first = from + at + 2 * i;
        sums.add(gradient + first, a + first, count);
      });
      sums.write(count, sign, db + to + 2 * i);
    }
  });
}

constexpr auto mul_of_type = [](const State& state) -> runtime::KernelFunction {
  return state.type == DType::float32 ? run_mul<float> : run_mul<double>;
};
constexpr auto grad_right_of_type = [](const State& state) -> runtime::KernelFunction {
  return state.type == DType::float32 ? run_grad_right<float> : run_grad_right<double>;
};

}  // namespace

std::vector<runtime::Kernel> complex_mul_kernels() {
  return {{.name = "plain", .prepare = prepare<mul_state, mul_of_type>}};
}

std::vector<runtime::Kernel> complex_mul_grad_right_kernels() {
  return {{.name = "plain", .prepare = prepare<grad_right_state, grad_right_of_type>}};
}

}  // namespace arenite::codelets
