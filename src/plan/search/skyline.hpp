// The books of the exact search: what lies on the ground, and how low everything else may still go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/plan/instance.hpp"
#include "src/plan/search/sections.hpp"

namespace arenite::plan {

/// Items are *open* until they are placed. Nothing is ever placed below what lies there, so each
/// open item has a *head*, the lowest offset that it may still take, and each section a *floor*,
/// the lowest head in it. Heads and floors only rise; undo() takes them back.
///
/// Items with a fixed offset lie where they lie from the beginning; heads pass over them.
class Skyline {
 public:
  Skyline(const Instance& instance, const Sections& sections);

  /// Forgets all that was placed. False when even that does not fit into `capacity` bytes.
  bool reset(std::int64_t capacity);

  std::int64_t head(std::size_t item) const noexcept { return head_[item]; }
  /// The lowest offset that something upon it could have, were it at its head.
  std::int64_t top(std::size_t item) const noexcept { return head_[item] + bytes_[item]; }
  std::int64_t floor(std::size_t section) const noexcept { return floor_[section]; }
  /// Bytes of the open items in it; 0 iff it has none.
  std::int64_t load(std::size_t section) const noexcept { return load_[section]; }
  /// Where time is a line: how many open items are in it or a later one, and in one before.
  std::int64_t bridges(std::size_t section) const noexcept { return bridges_[section]; }
  /// Bytes that may stay unused in it above its floor.
  std::int64_t slack(std::size_t section) const noexcept { return slack(section, floor_[section]); }
  /// The same if its floor were there; negative when what is open would not fit.
  std::int64_t slack(std::size_t section, std::int64_t floor) const noexcept {
    return room_[section] - floor - load_[section] - fixed_above(section, floor);
  }
  /// The section that failed last.
  std::size_t failed() const noexcept { return failed_; }

  // Both return whether what is open may still fit; if not, call undo(). `open` are the open items
  // after the change.

  /// Puts the item at its head. Open items that conflict with it rise above it.
  bool place(std::size_t item, const Bits& open);
  /// No open item of the section may lie below `offset`.
  bool raise(std::size_t section, std::int64_t offset, const Bits& open);

  std::size_t mark() const noexcept { return trail_.size(); }
  void undo(std::size_t mark) noexcept;

  /// Sections [first, last).
  struct Sector {
    std::size_t first = 0;
    std::size_t last = 0;

    bool empty() const noexcept { return first >= last; }
    void include(const Sector& other) noexcept;
  };
  /// Holds all whose floor or load has changed since this was last asked.
  Sector take_changes() noexcept { return std::exchange(changed_, {}); }

  /// Grows with the work done; the same on every machine.
  std::int64_t work() const noexcept { return work_; }

  /// The open items without fixed ones, at the beginning.
  const Bits& all() const noexcept { return all_; }

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  struct Change {
    std::int64_t* where;
    std::int64_t old;
  };

  void set(std::int64_t& where, std::int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  std::int64_t settle(std::size_t item, std::int64_t offset) const;
  std::int64_t fixed_above(std::size_t section, std::int64_t floor) const noexcept;
  bool lift(std::size_t item, std::int64_t offset);
  bool finish(std::size_t mark, bool fits, const Bits& open);
  bool lift_all(Row items, std::int64_t offset, const Bits& open);
  bool update_floors(const Bits& open);
  void touch(std::size_t item);

  const Instance& instance_;
  const Sections& sections_;
  Bits all_;
  std::int64_t work_ = 0;
  std::size_t failed_ = 0;
  std::vector<std::int64_t> bytes_;         // by item: stacked, as all offsets are multiples
  std::vector<std::int64_t> padding_;       // by item: of these bytes, what may pass the capacity
  std::vector<std::int64_t> most_padding_;  // by section: of an item in it
  std::vector<std::int64_t> highest_;       // by item: the offset at which it just fits
  std::vector<std::int64_t> room_;          // by section: the highest end of stacked bytes
  std::vector<std::int64_t> head_;
  std::vector<std::int64_t> floor_;
  std::vector<std::int64_t> load_;
  std::vector<std::int64_t> bridges_;
  std::vector<std::size_t> watched_;  // by section: an item that held its floor down when last seen
  std::vector<Change> trail_;
  Sector touched_;  // by the step under way: their floor may have risen
  Sector lifted_;   // by it, too: nothing open in these is below lifted_to_
  std::int64_t lifted_to_ = 0;
  Sector changed_;
  struct Step {
    std::size_t mark = 0;
    Sector touched;
  };
  std::vector<Step> steps_;  // that can be undone
  bool any_fixed_ = false;
  std::vector<std::vector<Range>> fixed_around_;  // by item, ascending
  std::vector<std::vector<Range>> fixed_in_;      // by section, ascending
};

}  // namespace arenite::plan
