// Complex numbers: pairs of elements along the last axis.
#include "tests/reference/rules.hpp"

#include <complex>

namespace arenite::reference {
namespace {

using Number = std::complex<double>;

Number at(const Tensor& tensor, std::int64_t i) { return {tensor[2 * i], tensor[2 * i + 1]}; }

/// Calls f(number of a, number of b) for all of a's, with those of b repeated along the axes on
/// which b is 1.
template <class F>
void each_pair(const Shape& a, const Shape& b, F f) {
  for (std::int64_t i = 0; i < a.elements() / 2; ++i) {
    std::int64_t left = i, right = 0, step = 1;
    for (int axis = a.rank() - 2; axis >= 0; --axis) {
      right += left % a[axis] % b[axis] * step;
      left /= a[axis];
      step *= b[axis];
    }
    f(i, right);
  }
}

void complex_mul(Call& call) {
  const Tensor &a = call.in(0), &b = call.in(1);
  const bool conjugate = call.attributes().integer("conjugate") == 1;
  each_pair(a.shape, b.shape, [&](std::int64_t i, std::int64_t j) {
    const Number y = at(a, i) * (conjugate ? std::conj(at(b, j)) : at(b, j));
    call.out(0)[2 * i] = y.real();
    call.out(0)[2 * i + 1] = y.imag();
  });
}

/// Σ g · conj(a); with conjugate=1, Σ conj(g) · a
void complex_mul_grad_right(Call& call) {
  const Tensor &gradient = call.in(0), &a = call.in(1);
  const bool conjugate = call.attributes().integer("conjugate") == 1;
  each_pair(a.shape, call.out(0).shape, [&](std::int64_t i, std::int64_t j) {
    const Number term =
        conjugate ? std::conj(at(gradient, i)) * at(a, i) : at(gradient, i) * std::conj(at(a, i));
    call.out(0)[2 * j] += term.real();
    call.out(0)[2 * j + 1] += term.imag();
  });
}

}  // namespace

void add_complex_rules(Rules& rules) {
  rules["complex_mul"] = complex_mul;
  rules["complex_mul_grad_right"] = complex_mul_grad_right;
}

}  // namespace arenite::reference
