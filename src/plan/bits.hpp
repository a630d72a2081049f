// Sets of small numbers as 64-bit words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arenite::plan {

using Bits = std::vector<std::uint64_t>;

inline bool has_bit(const Bits& set, std::size_t i) noexcept {
  return (set[i / 64] >> (i % 64) & 1) != 0;
}
inline void set_bit(Bits& set, std::size_t i) noexcept {
  set[i / 64] |= std::uint64_t{1} << (i % 64);
}
inline void clear_bit(Bits& set, std::size_t i) noexcept {
  set[i / 64] &= ~(std::uint64_t{1} << (i % 64));
}

/// One word of a set, which holds at least one number.
struct Word {
  std::size_t at = 0;
  std::uint64_t bits = 0;
};

/// A set that does not change: its words that are not empty, ascending.
using Row = std::span<const Word>;

/// Appends a set to what rows are made of.
inline void append_words(const Bits& set, std::vector<Word>& words) {
  for (std::size_t w = 0; w < set.size(); ++w) {
    if (set[w] != 0) words.push_back({w, set[w]});
  }
}

inline std::size_t size(Row row) noexcept {
  std::size_t sum = 0;
  for (const Word& word : row) sum += static_cast<std::size_t>(std::popcount(word.bits));
  return sum;
}

/// Whether visit(i) holds for every i of both sets; ascending, up to the first for which it does
/// not.
template <class Visit>
bool all_common(const Bits& a, Row b, Visit&& visit) {
  for (const auto [w, of_b] : b) {
    for (std::uint64_t bits = a[w] & of_b; bits != 0; bits &= bits - 1) {
      if (!visit(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)))) return false;
    }
  }
  return true;
}

inline bool intersect(const Bits& a, Row b) noexcept {
  return !all_common(a, b, [](std::size_t) { return false; });
}

/// The same for two sets of one size that may change.
template <class Visit>
void visit_common(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
                  Visit&& visit) {
  for (std::size_t w = 0; w < a.size(); ++w) {
    for (std::uint64_t bits = a[w] & b[w]; bits != 0; bits &= bits - 1) {
      visit(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}

/// Calls visit(i) for every i of the set, ascending.
template <class Visit>
void visit_bits(std::span<const std::uint64_t> set, Visit&& visit) {
  visit_common(set, set, visit);
}
template <class Visit>
void visit_bits(Row row, Visit&& visit) {
  for (const auto [w, word] : row) {
    for (std::uint64_t bits = word; bits != 0; bits &= bits - 1) {
      visit(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}

}  // namespace arenite::plan
