// The meaning of each function, for one element: for the scalar evaluator, for loops of which the
// function is known while they are compiled, and for GPUs, whose compiler is given this very text
// (see cuda.hpp). It has no headers, so that nothing here is of the standard library unless the
// host's part says so.
#ifdef __CUDACC_RTC__
#define ARENITE_ELEMENT __device__ inline
#define ARENITE_METHOD __device__
#else
#pragma once

#include <arenite/expr/expression.hpp>

#include <cmath>
#define ARENITE_ELEMENT inline
#define ARENITE_METHOD
#endif

namespace arenite::expr {

#ifdef __CUDACC_RTC__
/// Functions that are not exact are computed in this type, and rounded.
template <class T>
using Wide = T;
#else
using std::cos, std::erf, std::exp, std::expm1, std::fabs, std::floor, std::fma, std::log,
    std::log1p, std::pow, std::rint, std::signbit, std::sin, std::sqrt, std::tanh;
template <class T>
using Wide = long double;
#endif

/// What a type is like. (A GPU's compiler would make constants in memory of members.)
template <class T>
struct Kind {
  enum : bool { reals = true, integers = false };
};
template <>
struct Kind<bool> {
  enum : bool { reals = false, integers = false };
};
template <class T, class U>
struct IntegerKind {
  enum : bool { reals = false, integers = true };
  enum : T {
    highest = static_cast<T>(-1) < 0 ? static_cast<T>(static_cast<U>(-1) / 2) : static_cast<T>(-1),
    lowest = static_cast<T>(-1) < 0 ? static_cast<T>(U{1} << (8 * sizeof(T) - 1)) : T{0}
  };
  using Unsigned = U;
};
template <>
struct Kind<std::uint8_t> : IntegerKind<std::uint8_t, std::uint8_t> {};
template <>
struct Kind<std::int32_t> : IntegerKind<std::int32_t, std::uint32_t> {};
template <>
struct Kind<std::int64_t> : IntegerKind<std::int64_t, std::uint64_t> {};

/// Integers saturate, and a NaN is 0.
template <class To, class From>
ARENITE_ELEMENT To cast_value(From x) noexcept {
  using Target = Kind<To>;
  using Source = Kind<From>;
  if constexpr (!Target::reals && !Target::integers) {
    return x != From{};
  } else if constexpr (Source::reals && Target::integers) {
    // The upper bound may be one more than To holds.
    constexpr auto low = static_cast<From>(Target::lowest);
    constexpr From beyond = static_cast<From>(Target::highest) + 1;
    if (x != x) return 0;
    if (x >= beyond) return Target::highest;
    return x <= low ? static_cast<To>(Target::lowest) : static_cast<To>(x);
  } else if constexpr (Source::integers && Target::integers && sizeof(To) < sizeof(From)) {
    constexpr From low = Target::lowest, high = Target::highest;
    return static_cast<To>(x < low ? low : x > high ? high : x);
  } else {
    return static_cast<To>(x);
  }
}

/// To the nearest that a bfloat16 holds, ties to even; a NaN stays one.
ARENITE_ELEMENT float round_to_bfloat16(float x) noexcept {
  if (x != x) return x;
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  return __builtin_bit_cast(float, (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

template <Function function, class T>
ARENITE_ELEMENT T of_floats(T x, T y, T z) noexcept {
  const auto wide = static_cast<Wide<T>>(x);
  switch (function) {
    case Function::negate:
      return -x;
    case Function::abs:
      return fabs(x);
    case Function::floor:
      return floor(x);
    case Function::round:
      return rint(x);
    case Function::sqrt:
      return sqrt(x);
    case Function::rsqrt:
      return T{1} / sqrt(x);
    case Function::exp:
      return static_cast<T>(exp(wide));
    case Function::expm1:
      return static_cast<T>(expm1(wide));
    case Function::log:
      return static_cast<T>(log(wide));
    case Function::log1p:
      return static_cast<T>(log1p(wide));
    case Function::sin:
      return static_cast<T>(sin(wide));
    case Function::cos:
      return static_cast<T>(cos(wide));
    case Function::tanh:
      return static_cast<T>(tanh(wide));
    case Function::erf:
      return static_cast<T>(erf(wide));
    case Function::sigmoid:
      return static_cast<T>(1 / (1 + exp(-wide)));
    case Function::bfloat16:
      return static_cast<T>(round_to_bfloat16(static_cast<float>(x)));
    case Function::add:
      return x + y;
    case Function::subtract:
      return x - y;
    case Function::multiply:
      return x * y;
    case Function::divide:
      return x / y;
    case Function::min:
      if (x != x || y != y) return x + y;
      return x == y ? (signbit(x) ? x : y) : (x < y ? x : y);
    case Function::max:
      if (x != x || y != y) return x + y;
      return x == y ? (signbit(x) ? y : x) : (x < y ? y : x);
    case Function::pow:
      return static_cast<T>(pow(wide, static_cast<Wide<T>>(y)));
    case Function::fma:
      return fma(x, y, z);
    default:
      return x;
  }
}

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
struct PhiloxKey {
  std::uint32_t low, high;

  ARENITE_METHOD explicit PhiloxKey(std::uint64_t key) noexcept
      : low(static_cast<std::uint32_t>(key)), high(static_cast<std::uint32_t>(key >> 32)) {}
  ARENITE_METHOD void next() noexcept {
    low += 0x9e3779b9;
    high += 0xbb67ae85;
  }
};
enum : int { philox_rounds = 10 };
enum : std::uint32_t { philox_first = 0xd2511f53, philox_second = 0xcd9e8d57 };

/// One of the four words of a counter. Elements 16 apart have those of one, so that vectors of any
/// width need no shuffle: 64 elements are 16 counters, first their first words.
ARENITE_ELEMENT std::uint32_t philox_word(std::uint64_t element, std::uint64_t key) noexcept {
  const std::uint64_t counter = element / 64 * 16 + element % 16;
  std::uint32_t x0 = static_cast<std::uint32_t>(counter),
                x1 = static_cast<std::uint32_t>(counter >> 32), x2 = 0, x3 = 0;
  PhiloxKey keys(key);
  for (int round = 0; round < philox_rounds; ++round, keys.next()) {
    const std::uint64_t a = std::uint64_t{philox_first} * x0, b = std::uint64_t{philox_second} * x2;
    x0 = static_cast<std::uint32_t>(b >> 32) ^ x1 ^ keys.low;
    x1 = static_cast<std::uint32_t>(b);
    x2 = static_cast<std::uint32_t>(a >> 32) ^ x3 ^ keys.high;
    x3 = static_cast<std::uint32_t>(a);
  }
  const std::uint64_t word = element % 64 / 16;
  return word == 0 ? x0 : word == 1 ? x1 : word == 2 ? x2 : x3;
}

/// From 0 to below 1, in steps of 2⁻²⁴.
ARENITE_ELEMENT float uniform_of(std::uint32_t word) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 5.9604644775390625e-8f;
}

template <Function function, class T>
ARENITE_ELEMENT T of_integers(T x, T y) noexcept {
  using U = typename Kind<T>::Unsigned;
  const auto a = static_cast<U>(x), b = static_cast<U>(y);
  const auto places = static_cast<int>(b % (sizeof(T) * 8));
  const bool divides = y != 0 && !(y == -1 && x == Kind<T>::lowest);
  switch (function) {
    case Function::negate:
      return static_cast<T>(U{0} - a);
    case Function::abs:
      return x < 0 ? static_cast<T>(U{0} - a) : x;
    case Function::invert:
      return static_cast<T>(~a);
    case Function::add:
      return static_cast<T>(a + b);
    case Function::subtract:
      return static_cast<T>(a - b);
    case Function::multiply:
      return static_cast<T>(a * b);
    case Function::divide:
      return divides ? x / y : y == 0 ? T{0} : x;
    case Function::remainder:
      return divides ? x % y : T{0};
    case Function::min:
      return x < y ? x : y;
    case Function::max:
      return x < y ? y : x;
    case Function::bit_and:
      return static_cast<T>(a & b);
    case Function::bit_or:
      return static_cast<T>(a | b);
    case Function::bit_xor:
      return static_cast<T>(a ^ b);
    case Function::shift_left:
      return static_cast<T>(a << places);
    case Function::shift_right:
      return static_cast<T>(x >> places);
    case Function::philox:
      return static_cast<T>(
          philox_word(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
    default:
      return x;
  }
}

template <Function function>
ARENITE_ELEMENT bool of_booleans(bool x, bool y) noexcept {
  switch (function) {
    case Function::invert:
      return !x;
    case Function::bit_and:
      return x && y;
    case Function::bit_or:
      return x || y;
    default:
      return x != y;  // bit_xor
  }
}

template <Function function, class T>
ARENITE_ELEMENT bool compare(T x, T y) noexcept {
  switch (function) {
    case Function::equal:
      return x == y;
    case Function::not_equal:
      return x != y;
    case Function::less:
      return x < y;
    default:
      return x <= y;
  }
}

/// Of a function of values of one type.
template <Function function, class T>
ARENITE_ELEMENT auto of(T x, T y = T{}, T z = T{}) noexcept {
  if constexpr (function == Function::equal || function == Function::not_equal ||
                function == Function::less || function == Function::less_equal) {
    return compare<function>(x, y);
  } else if constexpr (function == Function::uniform && Kind<T>::integers) {
    return uniform_of(philox_word(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
  } else if constexpr (Kind<T>::reals) {
    return of_floats<function>(x, y, z);
  } else if constexpr (Kind<T>::integers) {
    return of_integers<function>(x, y);
  } else {
    return of_booleans<function>(x, y);
  }
}

}  // namespace arenite::expr
