// Sets of small numbers as rows of 64-bit words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite::plan {

using Bits = std::vector<std::uint64_t>;

inline bool has_bit(const std::uint64_t* set, std::size_t i) noexcept {
  return (set[i / 64] >> (i % 64) & 1) != 0;
}
inline void set_bit(std::uint64_t* set, std::size_t i) noexcept {
  set[i / 64] |= std::uint64_t{1} << (i % 64);
}
inline void clear_bit(std::uint64_t* set, std::size_t i) noexcept {
  set[i / 64] &= ~(std::uint64_t{1} << (i % 64));
}

/// Whether visit(i) holds for every i of both sets; ascending, up to the first for which it does
/// not.
template <class Visit>
bool all_common(const std::uint64_t* a, const std::uint64_t* b, std::size_t words, Visit&& visit) {
  for (std::size_t w = 0; w < words; ++w) {
    for (std::uint64_t bits = a[w] & b[w]; bits != 0; bits &= bits - 1) {
      if (!visit(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)))) return false;
    }
  }
  return true;
}

/// Calls visit(i) for every i of the set, ascending.
template <class Visit>
void visit_bits(const std::uint64_t* set, std::size_t words, Visit&& visit) {
  all_common(set, set, words, [&](std::size_t i) {
    visit(i);
    return true;
  });
}

inline bool intersect(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) noexcept {
  return !all_common(a, b, words, [](std::size_t) { return false; });
}

}  // namespace arenite::plan
