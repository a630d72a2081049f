// The tree in which `sum` adds its terms, and whoever promises the same bits.
#pragma once

#include <cstddef>

namespace arenite {

/// Where terms [from, to), of which there are several, are divided: both parts are added before
/// they are to each other.
constexpr std::size_t middle_of(std::size_t from, std::size_t to) noexcept {
  return from + (to - from) / 2;
}

}  // namespace arenite
