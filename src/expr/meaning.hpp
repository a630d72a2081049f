// The meaning of each function, for one element. Loops that run machines' own instructions take
// these where they know the function while they are compiled.
#pragma once

#include <arenite/expr/expression.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace arenite::expr {

template <class To, class From>
inline To cast_value(From x) noexcept {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // The bounds of To as From has them; the upper one may be one more than To holds.
    constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From beyond = static_cast<From>(std::numeric_limits<To>::max()) + 1;
    if (x != x) return 0;
    if (x >= beyond) return std::numeric_limits<To>::max();
    return x <= low ? std::numeric_limits<To>::min() : static_cast<To>(x);
  } else if constexpr (std::is_same_v<To, std::uint8_t> && std::is_integral_v<From> &&
                       !std::is_same_v<From, bool> && !std::is_same_v<From, std::uint8_t>) {
    return x < 0 ? std::uint8_t{0} : x > 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(x);
  } else if constexpr (std::is_same_v<To, std::int32_t> && std::is_same_v<From, std::int64_t>) {
    constexpr std::int64_t low = std::numeric_limits<To>::min(),
                           high = std::numeric_limits<To>::max();
    return static_cast<To>(x < low ? low : x > high ? high : x);
  } else {
    return static_cast<To>(x);
  }
}

/// To the nearest that a bfloat16 holds, ties to even; a NaN stays one.
inline float round_to_bfloat16(float x) noexcept {
  if (x != x) return x;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

template <class T>
inline T of_floats(Function function, T x, T y, T z) noexcept {
  const auto rounded = [](long double wide) { return static_cast<T>(wide); };
  const auto wide = static_cast<long double>(x);
  switch (function) {
    case Function::negate:
      return -x;
    case Function::abs:
      return std::fabs(x);
    case Function::floor:
      return std::floor(x);
    case Function::round:
      return std::nearbyint(x);
    case Function::sqrt:
      return std::sqrt(x);
    case Function::rsqrt:
      return T{1} / std::sqrt(x);
    case Function::exp:
      return rounded(std::exp(wide));
    case Function::expm1:
      return rounded(std::expm1(wide));
    case Function::log:
      return rounded(std::log(wide));
    case Function::log1p:
      return rounded(std::log1p(wide));
    case Function::sin:
      return rounded(std::sin(wide));
    case Function::cos:
      return rounded(std::cos(wide));
    case Function::tanh:
      return rounded(std::tanh(wide));
    case Function::erf:
      return rounded(std::erf(wide));
    case Function::sigmoid:
      return rounded(1 / (1 + std::exp(-wide)));
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
      return x == y ? (std::signbit(x) ? x : y) : (x < y ? x : y);
    case Function::max:
      if (x != x || y != y) return x + y;
      return x == y ? (std::signbit(x) ? y : x) : (x < y ? y : x);
    case Function::pow:
      return rounded(std::pow(wide, static_cast<long double>(y)));
    case Function::fma:
      return std::fma(x, y, z);
    default:
      return x;
  }
}

template <class T>
inline T of_integers(Function function, T x, T y) noexcept {
  using U = std::make_unsigned_t<T>;
  const auto a = static_cast<U>(x), b = static_cast<U>(y);
  const auto places = static_cast<int>(b % (sizeof(T) * 8));
  const auto divides = [&] { return y != 0 && !(y == -1 && x == std::numeric_limits<T>::min()); };
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
      return divides() ? x / y : y == 0 ? T{0} : x;
    case Function::remainder:
      return divides() ? x % y : T{0};
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
    default:
      return x;
  }
}

inline bool of_booleans(Function function, bool x, bool y) noexcept {
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

template <class T>
inline bool compare(Function function, T x, T y) noexcept {
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

}  // namespace arenite::expr
