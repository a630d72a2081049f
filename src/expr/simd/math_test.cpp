// Functions of vectors against exact ones, for each instruction set of this machine, where
// denormals count as zero as in steps, and where they do not.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/expr/simd/math_test.cpp"

#include "src/expr/simd/targets.hpp"

#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "src/expr/simd/math-inl.hpp"

#include <arenite/expr/expression.hpp>

HWY_BEFORE_NAMESPACE();
namespace arenite::expr::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T, class F>
HWY_INLINE void each(const T* x, const T* y, T* to, std::size_t count, F f) {
  const math::Tag<T> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    hn::StoreU(f(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, to + i);
}

template <class T>
void apply_to(Function function, const T* x, const T* y, T* to, std::size_t count) {
  switch (function) {
#define ARENITE_CASE(NAME, ...)                                                                  \
  case Function::NAME:                                                                           \
    return each(x, y, to, count, []([[maybe_unused]] auto a, [[maybe_unused]] auto b) HWY_ATTR { \
      return math::NAME(__VA_ARGS__);                                                            \
    });
    ARENITE_CASE(exp, a)
    ARENITE_CASE(expm1, a)
    ARENITE_CASE(log, a)
    ARENITE_CASE(log1p, a)
    ARENITE_CASE(sin, a)
    ARENITE_CASE(cos, a)
    ARENITE_CASE(tanh, a)
    ARENITE_CASE(erf, a)
    ARENITE_CASE(sigmoid, a)
    ARENITE_CASE(pow, a, b)
    ARENITE_CASE(min, a, b)
    ARENITE_CASE(max, a, b)
    ARENITE_CASE(fma, a, b, a)
#undef ARENITE_CASE
    default:
      if constexpr (sizeof(T) == sizeof(float))
        each(x, y, to, count, [](auto a, auto) HWY_ATTR { return math::bfloat16(a); });
  }
}

}  // namespace

// x and y alike; a multiple of 16 elements.
void apply32(Function function, const float* x, const float* y, float* to, std::size_t count) {
  apply_to(function, x, y, to, count);
}
void apply64(Function function, const double* x, const double* y, double* to, std::size_t count) {
  apply_to(function, x, y, to, count);
}

}  // namespace arenite::expr::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "src/expr/functions.hpp"
#include "src/expr/simd/math_reference.hpp"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <bit>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace arenite::expr {
namespace {

HWY_EXPORT(apply32);
HWY_EXPORT(apply64);

struct Isa {
  const char* name;
  std::int64_t target;
};
/// Of this machine, the best first.
std::vector<Isa> isas() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<Isa> there;
  for (const Isa& isa : {Isa{"avx512", HWY_AVX3}, Isa{"avx2", HWY_AVX2}}) {
    if (hwy::SupportedTargets() & isa.target) there.push_back(isa);
  }
  there.push_back({"baseline", HWY_SCALAR});
  return there;
}

/// Denormals count as zero while it lives: MXCSR's FTZ and DAZ.
struct Flushing {
  explicit Flushing(bool on) : before(_mm_getcsr()) {
    if (on) _mm_setcsr(before | 0x8040);
  }
  ~Flushing() { _mm_setcsr(before); }
  unsigned before;
};

template <class T>
std::vector<T> run(const Isa& isa, bool flushes, Function function, const std::vector<T>& x,
                   const std::vector<T>& y) {
  hwy::SetSupportedTargetsForTest(isa.target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  std::vector<T> to(x.size());
  {
    const Flushing flushing(flushes);
    if constexpr (sizeof(T) == sizeof(float)) {
      HWY_DYNAMIC_DISPATCH(apply32)(function, x.data(), y.data(), to.data(), x.size());
    } else {
      HWY_DYNAMIC_DISPATCH(apply64)(function, x.data(), y.data(), to.data(), x.size());
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  return to;
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Up to a multiple of 16.
template <class T>
void fill(std::vector<T>& x) {
  while (x.size() % 16 != 0) x.push_back(x.back());
}

/// Of float32 each so many bit patterns; of float64 random ones; of both, more where functions are
/// neither 0 nor 1 nor ∞.
template <class T>
std::vector<T> places() {
  std::vector<T> x = edges<T>();
  std::mt19937_64 random(7);
  if constexpr (sizeof(T) == 4) {
    for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 4099)
      x.push_back(std::bit_cast<T>(static_cast<std::uint32_t>(bits)));
  } else {
    for (int i = 0; i < 3000; ++i) x.push_back(std::bit_cast<T>(random()));
  }
  for (const double range : {1.0, 8.0, 110.0, 750.0, 1e5}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (int i = 0; i < 1500; ++i) {
      x.push_back(static_cast<T>(uniform(random)));
      x.push_back(static_cast<T>(std::exp(-std::fabs(uniform(random)))));
    }
  }
  fill(x);
  return x;
}

/// Each edge to the power of each, and random powers that are neither too large nor too small.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs() {
  std::vector<T> x, y;
  for (const T a : edges<T>()) {
    for (const T b : edges<T>()) x.push_back(a), y.push_back(b);
  }
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const double range = std::log(static_cast<double>(std::numeric_limits<T>::max()));
  for (int i = 0; i < (sizeof(T) == 4 ? 200'000 : 6000); ++i) {
    const double log = uniform(random) * (i % 2 ? range : 1);
    x.push_back(static_cast<T>(std::exp(log)));
    y.push_back(static_cast<T>(1.06 * range * uniform(random) / log));
    if (i % 5) continue;
    y.back() = std::round(y.back());
    x.back() = -x.back();
  }
  fill(x), fill(y);
  return {x, y};
}

template <class T>
struct Sweep {
  Function function;
  const std::vector<T>&x, &y;
  bool flushes;

  T given(T value) const { return flushes ? flushed(value) : value; }

  std::vector<long double> exact() const {
    Exact exactly;
    std::vector<long double> results;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const T a = given(x[i]), b = given(y[i]);
      results.push_back(sizeof(T) == 4 ? wide_result(function, a, b) : exactly(function, a, b));
    }
    return results;
  }

  /// Prints and compares the largest error with its bound.
  void measure(const Isa& isa, const std::vector<T>& got, const std::vector<long double>& exact,
               double bound) const {
    double worst = 0;
    std::size_t at = 0;
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = error_in_ulps(got[i], exact[i], flushes);
      if (error > bound && ++wrong <= 20) {
        ADD_FAILURE() << x[i] << ", " << y[i] << ": " << got[i] << " instead of " << exact[i];
      }
      if (error > worst) worst = error, at = i;
    }
    std::printf("%-8s float%-2d %-8s %s %.3f ulp, of %.2f, at %.9g\n",
                std::string(info(function).name).c_str(), static_cast<int>(sizeof(T) * 8), isa.name,
                flushes ? "flushes" : "       ", worst, bound, static_cast<double>(x[at]));
  }

  void check(double bound) const {
    const std::vector<long double> results = exact();
    std::vector<T> first;
    for (const Isa& isa : isas()) {
      SCOPED_TRACE(std::string(info(function).name) + " on " + isa.name);
      const std::vector<T> got = run(isa, flushes, function, x, y);
      measure(isa, got, results, bound);
      if (first.empty()) first = got;
      if (isa.target == HWY_SCALAR) continue;
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::bit_cast<Bits<T>>(got[i]) == std::bit_cast<Bits<T>>(first[i]) ||
                    (std::isnan(got[i]) && std::isnan(first[i])))
            << x[i] << ", " << y[i] << ": other bits";
      }
    }
  }
};

struct Bound {
  Function function;
  double float32, float64;
};
// As the docs state them.
constexpr Bound bounds[] = {
    {Function::exp, 1.1, 1},    {Function::expm1, 1.7, 1}, {Function::log, 0.9, 1},
    {Function::log1p, 1.5, 1},  {Function::sin, 1, 1},     {Function::cos, 1, 1},
    {Function::tanh, 1.4, 1.1}, {Function::erf, 1, 1},     {Function::sigmoid, 2.4, 2.4},
    {Function::pow, 1, 2},
};

template <class T>
void check_all(bool flushes) {
  const std::vector<T> x = places<T>();
  const auto [base, power] = pairs<T>();
  for (const Bound& bound : bounds) {
    const double limit = sizeof(T) == 4 ? bound.float32 : bound.float64;
    if (bound.function == Function::pow) {
      Sweep<T>{bound.function, base, power, flushes}.check(limit);
    } else {
      Sweep<T>{bound.function, x, x, flushes}.check(limit);
    }
  }
}

TEST(VectorMath, Float32) { check_all<float>(false); }
TEST(VectorMath, Float32WithoutDenormals) { check_all<float>(true); }
TEST(VectorMath, Float64) { check_all<double>(false); }
TEST(VectorMath, Float64WithoutDenormals) { check_all<double>(true); }

/// What IEEE 754 defines, bit for bit.
template <class T>
void check_defined() {
  const auto [x, y] = pairs<T>();
  for (const Isa& isa : isas()) {
    const auto check = [&, &x = x, &y = y](Function function, auto expected) {
      const std::vector<T> got = run(isa, false, function, x, y);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const T want = expected(x[i], y[i]);
        ASSERT_TRUE(std::bit_cast<Bits<T>>(got[i]) == std::bit_cast<Bits<T>>(want) ||
                    (std::isnan(got[i]) && std::isnan(want)))
            << info(function).name << " on " << isa.name << ": " << x[i] << ", " << y[i] << ": "
            << got[i] << " instead of " << want;
      }
    };
    check(Function::min, [](T a, T b) {
      if (a != a || b != b) return a + b;
      return a < b || (a == b && std::signbit(a)) ? a : b;
    });
    check(Function::max, [](T a, T b) {
      if (a != a || b != b) return a + b;
      return a > b || (a == b && !std::signbit(a)) ? a : b;
    });
    check(Function::fma, [](T a, T b) { return std::fma(a, b, a); });
    if constexpr (sizeof(T) == 4) {
      check(Function::bfloat16, [](T a, T) {
        if (!std::isfinite(a) || a == 0) return a;
        const int last = std::max(std::ilogb(a), -126) - 7;
        return static_cast<T>(std::ldexp(std::nearbyint(std::ldexp(double{a}, -last)), last));
      });
    }
  }
}

TEST(VectorMath, DefinedOfFloat32) { check_defined<float>(); }
TEST(VectorMath, DefinedOfFloat64) { check_defined<double>(); }

}  // namespace
}  // namespace arenite::expr
#endif
