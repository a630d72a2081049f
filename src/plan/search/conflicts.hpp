// Which items stand in an item's way, found anew each time: in little memory, however many do.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

/// Items have numbers, 0, 1, …: on a line in the order of their begins, so that those alive
/// together are near each other in memory that is laid out by number.
class Conflicts {
 public:
  /// O(n log n) time and O(n) memory on a line without gaps; else it reads the instance's rows.
  explicit Conflicts(const Instance& instance);

  /// By number: the item.
  const std::vector<std::size_t>& items() const noexcept { return items_; }

  /// Calls visit(j) for the number j of every item that conflicts with number i, once. Returns how
  /// many were looked at for that.
  template <class Visit>
  std::size_t visit(std::size_t i, Visit&& visit) const;

 private:
  struct Life {
    std::int64_t end = 0;
    std::size_t number = 0;
  };

  template <class Visit>
  std::size_t visit_row(std::size_t i, Visit&& visit) const;

  const Instance& instance_;
  std::vector<std::size_t> items_;
  // On a line, by number:
  std::vector<std::int64_t> begins_;
  std::vector<std::int64_t> ends_;
  std::vector<std::size_t> after_;      // the first that begins when this one is over
  std::size_t stride_ = 1;              // a group is so many numbers
  std::vector<std::vector<Life>> old_;  // by group: what began before it and is not over
};

template <class Visit>
std::size_t Conflicts::visit(std::size_t i, Visit&& visit) const {
  if (instance_.words != 0) return visit_row(i, std::forward<Visit>(visit));
  const std::size_t group = i / stride_;
  for (const Life& life : old_[group]) {
    if (life.end > begins_[i]) visit(life.number);
  }
  for (std::size_t j = group * stride_; j < i; ++j) {
    if (ends_[j] > begins_[i]) visit(j);
  }
  for (std::size_t j = i + 1; j < after_[i]; ++j) visit(j);
  return old_[group].size() + after_[i] - group * stride_;
}

template <class Visit>
std::size_t Conflicts::visit_row(std::size_t i, Visit&& visit) const {
  for (std::size_t w = 0; w < instance_.words; ++w) {
    for (std::uint64_t bits = ~instance_.apart[i * instance_.words + w]; bits != 0;
         bits &= bits - 1) {
      const std::size_t j = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      if (j < items_.size() && j != i) visit(j);
    }
  }
  return instance_.words;
}

}  // namespace arenite::plan
