// What samples are drawn with: from elements of one type to those of another.
#pragma once

#include "codelets/cuda/qualifiers.hpp"
#include "codelets/registry.hpp"
#include "codelets/words.hpp"
#include "src/base/element.hpp"

#include <cstdint>
#include <type_traits>

namespace arenite::codelets {

/// Codes that draw writes to the status word. The samples meant are zeros then.
enum class DrawFault : std::uint32_t {
  cursor = 1,  ///< the batch would reach beyond the order: every sample is zeros
  index = 2,   ///< an entry of the order names no sample: that one is zeros
  value = 3,   ///< an integer that the result's type does not hold: it is zero
};

/// Numbers become real ones, and integers integers.
template <class From, class To>
inline constexpr bool can_draw = std::is_floating_point_v<To> ||
                                 (std::is_integral_v<From> && std::is_integral_v<To>);

/// An element as the result has it; an integer that its type does not hold is 0, and `held` false.
template <class From, class To>
ARENITE_GPU inline To drawn(From element, To scale, bool& held) {
  if constexpr (std::is_integral_v<To>) {
    const To as = static_cast<To>(element);
    const bool same = static_cast<From>(as) == element;
    held = held && same;
    return same ? as : To{0};
  } else {
    return scale * static_cast<To>(element);
  }
}

/// What `prepare` makes of an op: f(from, to) is called with a zero of each of its types.
template <class F>
PreparedKernel prepared_by_types(const OpView& op, F f) {
  return with_element(op.operand(0).type, [&](auto from) {
    using From =
        decltype(from);  // of what a lambda has captured GCC 12 says that it is a reference
    return with_element(op.result(0).type, [&](auto to) -> PreparedKernel {
      if constexpr (can_draw<From, decltype(to)>) {
        return f(From{}, to);
      } else {
        return {};  // the shape rule refuses it
      }
    });
  });
}

std::vector<Kernel> draw_kernels();

}  // namespace arenite::codelets
