// Where the exact search goes on, found without a look at every section.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/plan/bits.hpp"

namespace arenite::plan {

/// Along a line of sections with floors, a *valley* is a run of equal floors between higher ones;
/// the ends of the line count as higher. Each section has a need. Finds the section with the least
/// need in a valley of a part of the line, the first of equals, in time logarithmic in the length
/// of the line and linear in what has changed.
class Valleys {
 public:
  struct Section {
    std::int64_t floor = 0;
    double need = 0;
  };

  explicit Valleys(std::size_t sections);

  /// These begin at section `first`.
  void change(std::size_t first, const std::vector<Section>& sections);

  /// For sections [first, last) as if they were the whole line; not empty.
  std::size_t least(std::size_t first, std::size_t last) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index none = 0xffffffffu;

  /// For each range of a binary tree the section with the least need, or none.
  using Tree = std::vector<Index>;

  Index better(Index left, Index right) const noexcept {
    if (left == none || right == none) return left == none ? right : left;
    return sections_[right].need < sections_[left].need ? right : left;
  }
  void update(Tree& tree, std::size_t first, std::size_t last) const;
  Index least(const Tree& tree, std::size_t first, std::size_t last) const;
  bool begins_run(std::size_t section) const noexcept {
    return section == 0 || sections_[section - 1].floor != sections_[section].floor;
  }
  std::size_t run_begin(std::size_t section) const noexcept;  ///< of the run that it is in
  std::size_t run_end(std::size_t section) const noexcept;

  std::size_t leaves_;  // of the trees, a power of two
  std::vector<Section> sections_;
  Bits begins_;  // of runs
  Tree all_;
  Tree valleys_;  // at the begin of a run that is a valley: its best section
};

}  // namespace arenite::plan
