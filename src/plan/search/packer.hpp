// Does it fit? An exact depth-first search for offsets below a capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "src/plan/instance.hpp"
#include "src/plan/search/sections.hpp"
#include "src/plan/search/skyline.hpp"

namespace arenite::plan {

/// Fills a skyline from below. At each node it takes a *valley*: a section whose floor no other
/// section around is below, the one with the least room to waste. Either one of the items that can
/// lie on that floor does, or none does, and then the floor rises to the lowest top that the first
/// item there could lie upon instead. These cases exclude each other and leave none out, for every
/// packing can be pushed down until each item lies on another or on the ground; so a search that
/// ends without a packing has proved that there is none.
///
/// Where a section has no bytes to waste, the second case dies at once; and as the next valley is
/// chosen by need, the search stays with one difficulty until it is solved. (MiniMalloc's
/// canonical order, by ascending offset over all sections, wanders between distant ones.)
class Packer {
 public:
  /// Which of the items for a valley comes first.
  struct Preference {
    std::vector<std::uint32_t> ranks;  ///< by item; the lower is preferred
    bool fit_first = false;            ///< only among those that fit the valley equally well
  };

  Packer(const Instance& instance, const Sections& sections);

  enum class Outcome { found, impossible, gave_up };

  /// Gives up when its work() has grown by more than `budget`. The sections that failed are
  /// preferred in later calls.
  Outcome pack(std::int64_t capacity, Preference preference, std::int64_t budget);

  /// By item, after `found`.
  const std::vector<std::int64_t>& offsets() const noexcept { return offsets_; }
  /// All in all; the same on every machine. A million takes some milliseconds.
  std::int64_t work() const noexcept { return skyline_.work() + nodes_; }

 private:
  /// Sections [first, last), and the open items in them.
  struct Part {
    std::size_t first = 0;
    std::size_t last = 0;
    Bits open;
  };
  struct Frame {
    std::vector<std::size_t> candidates;
    Bits open;
    std::vector<Part> parts;
  };

  // Each returns whether all of the part's items found a place.
  bool solve(const Part& part, std::size_t depth);
  bool try_item(const Part& part, std::size_t item, std::size_t depth);
  bool try_waste(const Part& part, std::size_t valley, std::size_t depth);
  /// What is open in the frame, piece by piece if it has fallen apart.
  bool solve_rest(const Part& part, std::size_t depth);

  bool has_fallen_apart(const Part& part) const;
  std::size_t choose_valley(const Part& part) const;
  void list_candidates(const Part& part, std::size_t valley, std::vector<std::size_t>& list);
  bool may_lie(std::size_t item) const;
  int fit(const Part& part, std::size_t item) const;
  std::int64_t next_floor(const Part& part, std::size_t valley);
  Frame& frame(std::size_t depth);

  const Sections& sections_;
  Skyline skyline_;
  std::vector<std::size_t> twin_;  // by item: the first that is the same but in name
  Preference preference_;
  std::vector<std::int64_t> offsets_;
  std::vector<double> failures_;  // by section
  std::vector<int> fits_;         // by item; for the candidates at hand
  Bits near_;                     // scratch of next_floor()
  std::deque<Frame> frames_;      // by depth; stay where they are when it grows
  std::int64_t nodes_ = 0;
  std::int64_t limit_ = 0;
  bool gave_up_ = false;
};

}  // namespace arenite::plan
