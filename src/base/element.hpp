// Element types as types of C++.
#pragma once

#include <arenite/types.hpp>

#include <cstdint>
#include <type_traits>

namespace arenite {

/// Others are integers.
constexpr bool is_real(DType type) noexcept {
  return type == DType::float32 || type == DType::float64;
}

/// What to add such elements in: integers wrap around instead of overflowing.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

/// Calls f with a zero of the type's elements.
template <class F>
decltype(auto) with_element(DType type, F f) {
  switch (type) {
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::uint8:
      break;
  }
  return f(std::uint8_t{});
}

}  // namespace arenite
