// What vector functions are measured with: exact results, and errors in units in the last place.
#pragma once

#include <arenite/expr/expression.hpp>

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace arenite::expr {

/// Rounded to the 64 bits of a long double of 200 bits.
class Exact {
 public:
  Exact() { mpfr_inits2(200, x_, y_, static_cast<mpfr_ptr>(nullptr)); }
  ~Exact() { mpfr_clears(x_, y_, static_cast<mpfr_ptr>(nullptr)); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;

  long double operator()(Function function, double x, double y = 0) {
    mpfr_set_d(x_, x, MPFR_RNDN);
    mpfr_set_d(y_, y, MPFR_RNDN);
    apply(function);
    return mpfr_get_ld(x_, MPFR_RNDN);
  }

 private:
  void apply(Function function) {
    switch (function) {
      case Function::exp:
        mpfr_exp(x_, x_, MPFR_RNDN);
        return;
      case Function::expm1:
        mpfr_expm1(x_, x_, MPFR_RNDN);
        return;
      case Function::log:
        mpfr_log(x_, x_, MPFR_RNDN);
        return;
      case Function::log1p:
        mpfr_log1p(x_, x_, MPFR_RNDN);
        return;
      case Function::sin:
        mpfr_sin(x_, x_, MPFR_RNDN);
        return;
      case Function::cos:
        mpfr_cos(x_, x_, MPFR_RNDN);
        return;
      case Function::tanh:
        mpfr_tanh(x_, x_, MPFR_RNDN);
        return;
      case Function::erf:
        mpfr_erf(x_, x_, MPFR_RNDN);
        return;
      case Function::pow:
        mpfr_pow(x_, x_, y_, MPFR_RNDN);
        return;
      default:  // sigmoid
        mpfr_neg(x_, x_, MPFR_RNDN);
        mpfr_exp(x_, x_, MPFR_RNDN);
        mpfr_add_ui(x_, x_, 1, MPFR_RNDN);
        mpfr_ui_div(x_, 1, x_, MPFR_RNDN);
        return;
    }
  }

  mpfr_t x_, y_;
};

/// For float32, of many more places than MPFR has time for: by the C library.
inline long double wide_result(Function function, long double x, long double y = 0) {
  switch (function) {
    case Function::exp:
      return std::exp(x);
    case Function::expm1:
      return std::expm1(x);
    case Function::log:
      return std::log(x);
    case Function::log1p:
      return std::log1p(x);
    case Function::sin:
      return std::sin(x);
    case Function::cos:
      return std::cos(x);
    case Function::tanh:
      return std::tanh(x);
    case Function::erf:
      return std::erf(x);
    case Function::pow:
      return std::pow(x, y);
    default:  // sigmoid
      return 1 / (1 + std::exp(-x));
  }
}

/// Where functions change their ways, overflow, or have no value; of either sign.
template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all;
  for (const T x : {T(0),
                    Limits::denorm_min(),
                    Limits::min() / 2,
                    std::nextafter(Limits::min(), T(0)),
                    Limits::min(),
                    Limits::min() * 3,
                    Limits::epsilon() / 2,
                    Limits::epsilon(),
                    T(1e-8),
                    T(0.25),
                    std::nextafter(T(0.5), T(0)),
                    T(0.5),
                    T(0.625),
                    std::nextafter(T(1), T(0)),
                    T(1),
                    std::nextafter(T(1), T(2)),
                    std::nextafter(T(1.5), T(0)),
                    T(1.5),
                    T(2),
                    T(3),
                    T(3.96875),
                    T(4),
                    T(19.0),
                    T(87.33654),
                    T(87.33655),
                    T(88),
                    T(88.72283),
                    T(88.72284),
                    T(103.2789),
                    T(103.9),
                    T(104.1),
                    T(200),
                    T(708.3964),
                    T(709.78271289338397),
                    T(709.78271289338409),
                    T(744.44),
                    T(745.13),
                    T(745.2),
                    T(1e6),
                    T(16777215),
                    T(16777216),
                    T(9007199254740991),
                    T(1e30),
                    std::sqrt(Limits::max()),
                    Limits::max() / 2,
                    Limits::max(),
                    Limits::infinity(),
                    Limits::quiet_NaN()}) {
    all.push_back(x);
    all.push_back(-x);
  }
  return all;
}

/// As processors see a value where denormals count as zero.
template <class T>
T flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T{0}, x) : x;
}

/// How far a result is from the exact one, in units of the last place that T has there; ∞ where it
/// is a NaN, a zero, an ∞, or of a sign that it should not be. Where denormals count as zero, the
/// zeros made of them have any sign.
template <class T>
double error_in_ulps(T got, long double exact, bool flushes) {
  using Limits = std::numeric_limits<T>;
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got) ? 0 : wrong;
  const long double size = std::fabs(exact);
  if (flushes && std::fabs(got) < Limits::min() &&
      size < Limits::min() * (1 + 4 * static_cast<long double>(Limits::epsilon())))
    return 0;
  if (std::signbit(got) != std::signbit(exact)) return wrong;
  if (exact == 0) return got == 0 ? 0 : wrong;
  // What is rounded to ∞ if exponents were larger.
  const long double beyond = std::ldexp(1.0L, Limits::max_exponent);
  if (size >= beyond - std::ldexp(1.0L, Limits::max_exponent - Limits::digits - 1))
    return std::isinf(got) ? 0 : wrong;
  const long double value = std::isinf(got) ? beyond : std::fabs(static_cast<long double>(got));
  const int exponent = std::max(std::ilogb(size), Limits::min_exponent - 1);
  return static_cast<double>(std::fabs(value - size) /
                             std::ldexp(1.0L, exponent - Limits::digits + 1));
}

}  // namespace arenite::expr
