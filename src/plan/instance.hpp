// One space of a problem, in the form that strategies and bounds work on.
#pragma once

#include <arenite/plan/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace arenite::plan {

struct Item {
  std::int64_t bytes = 0;  // > 0
  std::int64_t alignment = 1;
  // With a precedence or gaps these decide no conflict, but begins still agree with the order: they
  // are given, or count the items before.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t fixed = -1;  // offset, or -1
  /// How long it is in the way: ticks of its lifetime without the gaps, or with a precedence its
  /// conflicts.
  std::int64_t extent = 0;
  std::size_t buffer = 0;  // index in the problem
  std::vector<Lifetime> gaps;
};

/// When it holds its bytes, ascending.
std::vector<Lifetime> pieces(const Item& item);

/// Items are in name order, so that ties broken by index are broken by name and no result depends
/// on the order of add. Buffers of 0 bytes are left out.
struct Instance {
  std::vector<Item> items;
  std::int64_t alignment = 1;        // the smallest: all offsets are multiples of it
  std::int64_t granule = 1;          // of the block: peaks are multiples of it
  bool line = true;                  // time is
  std::size_t words = 0;             // of a row of `apart`; 0 when time is a line without gaps
  std::vector<std::uint64_t> apart;  // bit j of row i: they never hold bytes at once

  /// What it keeps from those above it: whatever lies there has the smallest alignment at least.
  std::int64_t stacked(const Item& item) const noexcept { return round_up(item.bytes, alignment); }
  /// What of it counts for the peak: its bytes, but as the peak is rounded, so may they be.
  std::int64_t counted(const Item& item) const noexcept {
    return round_up(item.bytes, std::min(alignment, granule));
  }

  bool conflict(std::size_t i, std::size_t j) const noexcept {
    if (words != 0) return (apart[i * words + j / 64] >> (j % 64) & 1) == 0;
    return items[i].begin < items[j].end && items[j].begin < items[i].end;
  }
};

/// The peaks that a packing of these items may have: ends of items, rounded up to the granule.
class Peaks {
 public:
  explicit Peaks(const Instance& instance);

  /// The least above `bytes`. There are items.
  std::int64_t above(std::int64_t bytes) const noexcept;
  /// The highest that is at most `bytes`, or 0.
  std::int64_t until(std::int64_t bytes) const noexcept;

 private:
  std::int64_t granule_;
  // Of each alignment and rest of bytes in it, the least bytes.
  std::vector<std::pair<std::int64_t, std::int64_t>> kinds_;
};

/// Fills the rows of an instance whose time is a line, if an item has gaps.
void fill_rows(Instance& instance);

/// Of an instance with rows: how many items stand in i's way, itself among them.
std::size_t conflicts_of(const Instance& instance, std::size_t i) noexcept;

struct SpaceInstance {
  Space space;
  Instance instance;
};

/// One for each space that a buffer lives in (even of 0 bytes), ascending. The problem is valid.
std::vector<SpaceInstance> split_by_space(const Problem& problem);

}  // namespace arenite::plan
