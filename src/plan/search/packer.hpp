// Does it fit? An exact depth-first search for offsets below a capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "src/plan/instance.hpp"
#include "src/plan/search/sections.hpp"
#include "src/plan/search/skyline.hpp"
#include "src/plan/search/valleys.hpp"

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
  /// Where there are more on a line, it does not look at each at every node.
  static constexpr std::size_t few_sections = 512;

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
  /// Sections [first, last) with open items, none of which is in other sections too.
  struct Part {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  /// A node of the search: one alternative after the other for what lies on the floor of a valley.
  struct Frame {
    Part part;  // the valley is there
    std::size_t valley = 0;
    std::vector<std::size_t> candidates;
    std::size_t next = 0;     // of the candidates; after the last one comes waste
    std::size_t mark = 0;     // of the skyline, before the alternative under way
    std::size_t placed = 0;   // how many were, before it
    std::vector<Part> parts;  // what it leaves open, in pieces
    std::size_t solved = 0;   // of the parts
  };

  /// Depth first, without recursion: it is as deep as there are items.
  Outcome solve();
  /// Begins with a part. False when the work is used up.
  bool enter(const Part& part, Frame& frame);
  /// The next alternative that can be placed, if there is one.
  bool advance(Frame& frame);
  void undo(const Frame& frame);
  bool place(std::size_t item);
  bool waste(const Frame& frame);
  /// What is open in sections [first, last), piece by piece.
  std::vector<Part> pieces(const Part& part) const;

  bool has_fallen_apart(const Part& part) const;
  /// After an item of the part was placed, which was in one piece.
  bool has_fallen_apart(const Part& part, std::size_t item) const;
  std::size_t choose_valley(const Part& part);
  double need(std::size_t section) const;
  void fail_in(std::size_t section);
  void list_candidates(const Part& part, std::size_t valley, std::vector<std::size_t>& list);
  bool may_lie(std::size_t item) const;
  int fit(const Part& part, std::size_t item) const;
  std::int64_t next_floor(std::size_t valley);
  Frame& frame(std::size_t depth);

  const Sections& sections_;
  Skyline skyline_;
  std::vector<std::size_t> twin_;  // by item: the first that is the same but in name
  Preference preference_;
  std::vector<std::int64_t> offsets_;
  Bits open_;                           // items yet to be placed
  std::vector<std::size_t> placed_;     // the others, in the order of their placing
  std::optional<Valleys> valleys_;      // where there are many sections
  Skyline::Sector changed_;             // holds all that the valleys are to hear of
  std::vector<Valleys::Section> news_;  // scratch of choose_valley()
  std::vector<double> failures_;        // by section
  std::vector<int> fits_;               // by item; for the candidates at hand
  Bits near_;                           // scratch of next_floor()
  std::deque<Frame> frames_;            // by depth; stay where they are when it grows
  std::int64_t nodes_ = 0;
  std::int64_t limit_ = 0;
};

}  // namespace arenite::plan
