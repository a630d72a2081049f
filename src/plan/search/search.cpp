#include "src/plan/search/search.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "src/plan/search/leaves.hpp"
#include "src/plan/search/orders.hpp"
#include "src/plan/search/packer.hpp"
#include "src/plan/search/sections.hpp"
#include "src/plan/strategies/ordered_fit.hpp"

namespace arenite::plan {
namespace {

/// 1 1 2 1 1 2 4 1 1 2 …, from number 1: how long the best restarts take is not known beforehand
/// (Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993).
std::int64_t luby(std::uint32_t number) {
  for (;;) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(number));
    if (number == (std::uint32_t{1} << bits) - 1) return std::int64_t{1} << (bits - 1);
    number -= (std::uint32_t{1} << (bits - 1)) - 1;
  }
}

/// What a leaf needs to be searched.
struct Engine {
  explicit Engine(const Instance& instance)
      : sections(make_sections(instance)), orders(instance, sections), packer(instance, sections) {
    dive = static_cast<std::int64_t>(sections.items * (1 + sections.count / 4));
    for (const std::uint64_t word : sections.neighbours) dive += std::popcount(word);
  }

  Sections sections;
  Orders orders;
  Packer packer;
  std::int64_t dive = 0;  // about the work of placing every item once
  std::uint32_t restarts = 0;
};

/// With that much work, it might as well not be searched.
bool too_large(const Leaf& leaf, std::int64_t work) noexcept {
  const auto& items = leaf.instance.items;
  const std::size_t n = items.size();
  if (n <= most_items_in_an_order) return false;
  if (!leaf.instance.line || n > most_items_on_a_line) return true;
  std::size_t pieces = n;
  for (const Item& item : items) pieces += item.gaps.size();
  if (pieces > n && pieces > most_pieces_on_a_line) return true;
  return static_cast<std::int64_t>(n * n / 4) > work;
}

/// A leaf between the peaks that are proved impossible and the best one found.
class LeafSearch {
 public:
  /// The incumbent, where there is one, is a packing of the leaf.
  LeafSearch(Leaf leaf, const std::vector<std::int64_t>* incumbent)
      : leaf_(std::move(leaf)), lower_(leaf_.lower_bound) {
    if (incumbent != nullptr) {
      keep(*incumbent);
      return;
    }
    for (const auto order : {by_size, by_area, by_extent}) {
      keep(fit_in_order(leaf_.instance, order(leaf_.instance), Gap::lowest));
      if (upper_ == lower_) break;
    }
  }

  const Leaf& leaf() const noexcept { return leaf_; }
  std::int64_t lower() const noexcept { return leaf_.base + lower_; }
  std::int64_t upper() const noexcept { return leaf_.base + upper_; }

  void write_to(std::vector<std::int64_t>& offsets) const {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      offsets[leaf_.instance.items[i].buffer] = leaf_.base + best_[i];
    }
  }

  /// One step towards `goal`, a peak below which nobody needs to get. It takes two restarts' work,
  /// twice that in each later round, and at most `budget`. Returns the work done.
  std::int64_t step(std::int64_t goal, std::int64_t budget) {
    if (!engine_) engine_ = std::make_unique<Engine>(leaf_.instance);
    const std::int64_t before = engine_->packer.work();
    const std::int64_t first = 2 * patience * engine_->dive;
    advance(goal, before + std::min(budget, first << std::min(round_, 20)));
    return engine_->packer.work() - before;
  }

 private:
  static constexpr int precision = 6;          // the first round ends within 1/64
  static constexpr std::int64_t patience = 8;  // dives of the shortest restart

  void advance(std::int64_t goal, std::int64_t end) {
    const std::int64_t granule = leaf_.instance.granule;
    const std::int64_t lowest = std::max(lower_, round_up(goal - leaf_.base, granule));
    if (!given_up_) {
      decide(lowest, end);
      return;
    }
    *given_up_ = std::max(*given_up_, lowest);
    const std::int64_t gap = upper_ - *given_up_;
    if (gap <= std::max(granule, upper_ >> std::min(precision + round_, 62))) {
      ++round_;
      given_up_.reset();
      return;
    }
    decide(*given_up_ + std::max(granule, gap / 2 / granule * granule), end);
  }

  void keep(std::vector<std::int64_t> offsets) {
    const std::int64_t peak = peak_of(leaf_.instance, offsets);
    if (!best_.empty() && peak >= upper_) return;
    best_ = std::move(offsets);
    upper_ = peak;
  }

  /// Whether it fits into `capacity`, until the packer's work reaches `end`.
  void decide(std::int64_t capacity, std::int64_t end) {
    capacity = std::min(capacity, upper_ - leaf_.instance.granule);
    auto& [sections, orders, packer, dive, restarts] = *engine_;
    while (packer.work() < end) {
      const std::int64_t share =
          std::min(patience * dive * luby(restarts + 1), end - packer.work());
      const Packer::Preference preference{orders.ranks(restarts), restarts % 2 == 1};
      ++restarts;
      switch (packer.pack(capacity, preference, share)) {
        case Packer::Outcome::found:
          keep(packer.offsets());
          return;
        case Packer::Outcome::impossible:
          lower_ = capacity + leaf_.instance.granule;
          return;
        case Packer::Outcome::gave_up:
          break;
      }
    }
    given_up_ = capacity;
  }

  Leaf leaf_;
  std::int64_t lower_ = 0;
  std::int64_t upper_ = 0;
  std::vector<std::int64_t> best_;
  std::unique_ptr<Engine> engine_;        // once it is needed
  int round_ = 0;                         // how often the range between them has been searched
  std::optional<std::int64_t> given_up_;  // the highest capacity, in this round
};

}  // namespace

Packing search(const Instance& instance, const Limits& limits) {
  Leaves leaves = split(instance);
  const auto highest_bound = std::max_element(
      leaves.leaves.begin(), leaves.leaves.end(),
      [](const Leaf& a, const Leaf& b) { return a.base + a.lower_bound < b.base + b.lower_bound; });
  // Only the highest leaf counts, and this one would not be searched.
  if (limits.incumbent != nullptr && highest_bound != leaves.leaves.end() &&
      too_large(*highest_bound, limits.work)) {
    return {*limits.incumbent, limits.lower_bound};
  }
  Packing result{std::move(leaves.offsets), limits.lower_bound};
  std::vector<std::unique_ptr<LeafSearch>> searches;
  for (Leaf& leaf : leaves.leaves) {
    const bool whole = leaf.instance.items.size() == instance.items.size();
    if (whole) leaf.lower_bound = limits.lower_bound;
    searches.push_back(
        std::make_unique<LeafSearch>(std::move(leaf), whole ? limits.incumbent : nullptr));
  }
  std::int64_t work = limits.work;
  while (work > 0 && !searches.empty()) {
    // Only the highest leaf counts, and only down to where another bound ends.
    LeafSearch& highest =
        **std::max_element(searches.begin(), searches.end(),
                           [](const auto& a, const auto& b) { return a->upper() < b->upper(); });
    for (const auto& leaf : searches) {
      result.lower_bound = std::max(result.lower_bound, leaf->lower());
    }
    if (highest.upper() <= result.lower_bound || too_large(highest.leaf(), limits.work)) break;
    work -= highest.step(result.lower_bound, work);
  }
  for (const auto& leaf : searches) {
    result.lower_bound = std::max(result.lower_bound, leaf->lower());
    leaf->write_to(result.offsets);
  }
  return result;
}

}  // namespace arenite::plan
