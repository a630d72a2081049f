// Which items stand in each other's way, as sets: what the exact search keeps its books by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "src/plan/bits.hpp"
#include "src/plan/instance.hpp"

namespace arenite::plan {

/// Sections: sets of items that conflict pairwise, such that every conflict lies within one of
/// them. The bytes of a section's items lie above each other, all in one tower.
///
/// Where time is a line they are the sets of items alive together, in order of time, and the
/// sections of an item without gaps are consecutive. With a precedence they are maximal cliques of
/// the conflict graph, taken until they cover it.
struct Sections {
  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  /// Sets, one behind the other.
  class Rows {
   public:
    explicit Rows(std::size_t rows = 0) : spans_(rows) {}

    Row operator[](std::size_t row) const noexcept {
      return {words_.data() + spans_[row].begin, words_.data() + spans_[row].end};
    }
    void assign(std::size_t row, const Bits& set) {
      spans_[row].begin = words_.size();
      append_words(set, words_);
      spans_[row].end = words_.size();
    }
    void push_back(const Bits& set) {
      spans_.emplace_back();
      assign(size() - 1, set);
    }
    std::size_t size() const noexcept { return spans_.size(); }

   private:
    std::vector<Word> words_;
    std::vector<Span> spans_;
  };

  std::size_t items = 0;
  std::size_t count = 0;
  std::size_t words = 0;              // of a set of items
  bool in_time = true;                // in order of time
  bool line = true;                   // and without gaps
  std::vector<Span> spans;            // by item: where its sections stand in `numbers`
  std::vector<std::int32_t> numbers;  // ascending for each item; 0, 1, … where time is a line
  Rows members;                       // by section
  Rows neighbours;                    // by item: what it conflicts with, not itself

  /// The item's first section and its last, and what lies between them.
  std::pair<std::size_t, std::size_t> hull(std::size_t item) const noexcept {
    return {static_cast<std::size_t>(of(item).front()), static_cast<std::size_t>(of(item).back())};
  }
  std::span<const std::int32_t> of(std::size_t item) const noexcept {
    return {numbers.data() + spans[item].begin, numbers.data() + spans[item].end};
  }
  Row in(std::size_t section) const noexcept { return members[section]; }
  Row around(std::size_t item) const noexcept { return neighbours[item]; }
};

/// O(n²/64 + pairs in conflict) for lifetimes, and the sum of the sections' sizes where they have
/// gaps. Rows are short where items of near numbers are alive together.
Sections make_sections(const Instance& instance);

}  // namespace arenite::plan
