// What is placed so far, in address order: where the next item finds room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/plan/instance.hpp"

namespace arenite::plan {

/// A vector of runs rather than one long vector: inserting moves one run's entries only, and a
/// search still reads memory straight on.
class Shelf {
 public:
  explicit Shelf(const Instance& instance) : instance_(instance) {}

  /// The lowest aligned offset at which `item` overlaps nothing that it conflicts with.
  std::int64_t lowest(std::size_t item) const;
  /// The lower end of the smallest gap below an item that conflicts, the lowest of equals, measured
  /// from where the item would begin; above all of these where there is none. With `tail`, what
  /// lies between them and the highest end so far is a gap like the others.
  std::int64_t tightest(std::size_t item, bool tail) const;

  void insert(std::size_t item, std::int64_t offset);
  /// Takes out what ends at `time` or before. Only where time is a line.
  void forget_until(std::int64_t time);

 private:
  struct Entry {
    std::int64_t offset = 0;
    std::int64_t top = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::size_t item = 0;
  };
  using Run = std::vector<Entry>;
  static constexpr std::size_t longest_run = 512;

  /// search(conflict), where conflict(entry) says whether it is in the item's way.
  template <class Search>
  std::int64_t with_conflicts_of(std::size_t item, Search search) const;

  const Instance& instance_;
  std::vector<Run> runs_;
  std::int64_t top_ = 0;
};

}  // namespace arenite::plan
