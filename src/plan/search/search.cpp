#include "src/plan/search/search.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "src/plan/search/leaves.hpp"
#include "src/plan/search/neighbourhoods.hpp"
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
      : sections(make_sections(instance)),
        orders(instance, sections),
        packer(instance, sections),
        large(sections.line && sections.count > Packer::few_sections),
        dive(work_of_a_dive()) {}

  Sections sections;
  Orders orders;
  Packer packer;
  bool large;
  std::int64_t dive;  // about the work of placing every item once
  std::uint32_t restarts = 0;

 private:
  std::int64_t work_of_a_dive() const {
    std::size_t sum = sections.items * (1 + std::min(sections.count, Packer::few_sections) / 4);
    for (std::size_t i = 0; i < sections.items; ++i) sum += size(sections.around(i));
    // As its items are placed one by one, a section's floor rises, and they are looked through.
    for (std::size_t s = 0; large && s < sections.count; ++s) {
      const std::size_t members = size(sections.in(s));
      sum += members * members;
    }
    return static_cast<std::int64_t>(sum);
  }
};

/// What searching a leaf without gaps will take, known before anything is built.
struct Demand {
  std::int64_t sections = 0;
  std::int64_t pairs = 0;  // of items alive together
  std::int64_t dive = 0;   // about the work of placing every item once
};

Demand demand_of(const Instance& instance) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  for (const Item& item : instance.items) {
    changes.emplace_back(item.begin, 1);
    changes.emplace_back(item.end, -1);  // sorts before what begins then
  }
  std::sort(changes.begin(), changes.end());
  Demand demand;
  std::int64_t live = 0;
  bool begun = false;
  for (const auto& [time, change] : changes) {
    if (change > 0) {
      demand.pairs += live;
    } else if (begun) {
      ++demand.sections;
      demand.dive += live * live;
    }
    begun = change > 0;
    live += change;
  }
  return demand;
}

/// What a leaf's search takes at least.
struct Need {
  std::int64_t work = 0;  // 0 for what is small, all there is for what the books do not hold
  bool dive = false;      // it is that of a dive of a large leaf
};

Need need_of(const Leaf& leaf) {
  constexpr Need never{std::numeric_limits<std::int64_t>::max(), false};
  const auto& items = leaf.instance.items;
  const auto n = static_cast<std::int64_t>(items.size());
  if (items.size() <= most_items_in_an_order) return {};
  if (!leaf.instance.line || items.size() > most_items_on_a_line) return never;
  std::size_t pieces = items.size();
  for (const Item& item : items) pieces += item.gaps.size();
  if (pieces > items.size()) return pieces > most_pieces_on_a_line ? never : Need{n * n / 4, false};
  const Demand demand = demand_of(leaf.instance);
  if (demand.pairs > most_pairs_on_a_line) return never;
  const bool large = demand.sections > static_cast<std::int64_t>(Packer::few_sections);
  return large ? Need{demand.dive, true} : Need{n * n / 4, false};
}

/// A leaf between the peaks that are proved impossible and the best one found.
class LeafSearch {
 public:
  /// The incumbent, if it is not empty, is a packing of the leaf.
  LeafSearch(Leaf leaf, const std::vector<std::int64_t>& incumbent)
      : leaf_(std::move(leaf)),
        need_(need_of(leaf_)),
        peaks_(leaf_.instance),
        lower_(peaks_.above(leaf_.lower_bound - 1)) {
    if (!incumbent.empty()) {
      keep(incumbent);
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

  Need need() const noexcept { return need_; }
  bool untried() const noexcept { return !tried_; }

  /// Frees the books: no step follows.
  void end_steps() noexcept { engine_.reset(); }

  /// By neighbourhoods, which need no books. False where that has been done.
  bool improve(std::int64_t budget) {
    if (improved_) return false;
    improved_ = true;
    keep(search_neighbourhoods(leaf_.instance,
                               {.lower_bound = lower_, .work = budget, .incumbent = &best_})
             .offsets);
    return true;
  }

  /// One step towards `goal`, a peak below which nobody needs to get. It takes two restarts' work,
  /// twice that in each later round, and at most `budget`; a large leaf's first one may take a
  /// dive. Returns the work done.
  std::int64_t step(std::int64_t goal, std::int64_t budget) {
    if (!engine_) engine_ = std::make_unique<Engine>(leaf_.instance);
    tried_ = true;
    const std::int64_t before = engine_->packer.work();
    const std::int64_t dive = engine_->dive;
    hurry_ = engine_->large && budget < 4 * dive;
    std::int64_t share = std::min(budget, first_share() << std::min(round_, 20));
    if (engine_->large && engine_->restarts == 0) share = std::max(share, dive);
    advance(goal, before + share);
    return engine_->packer.work() - before;
  }

 private:
  static constexpr int precision = 6;          // the first round ends within 1/64
  static constexpr std::int64_t patience = 6;  // dives of the shortest restart

  /// Of work: a large leaf's tries are few, so that each is at another capacity.
  std::int64_t shortest_restart() const noexcept {
    return (engine_->large ? 1 : patience) * engine_->dive;
  }
  std::int64_t first_share() const noexcept {
    return (engine_->large ? 1 : 2) * shortest_restart();
  }

  void advance(std::int64_t goal, std::int64_t end) {
    const std::int64_t lowest = std::max(lower_, peaks_.until(goal - leaf_.base));
    // A large leaf's bound is out of reach, and every try is dear.
    if (!given_up_ && engine_->large && round_ == 0) given_up_ = lowest;
    if (!given_up_) {
      decide(lowest, end);
      return;
    }
    *given_up_ = std::max(*given_up_, lowest);
    const std::int64_t gap = upper_ - *given_up_;
    const std::int64_t next = peaks_.above(*given_up_);
    if (next >= upper_ || gap <= upper_ >> std::min(precision + round_, 62)) {
      ++round_;
      given_up_.reset();
      return;
    }
    // Half-way, or where it is likely to fit when few tries are left.
    const std::int64_t part = hurry_ ? gap - gap / 4 : gap / 2;
    decide(std::max(next, peaks_.until(*given_up_ + part)), end);
  }

  void keep(std::vector<std::int64_t> offsets) {
    const std::int64_t peak = peak_of(leaf_.instance, offsets);
    if (!best_.empty() && peak >= upper_) return;
    best_ = std::move(offsets);
    upper_ = peak;
  }

  /// Whether it fits into `capacity`, until the packer's work reaches `end`.
  void decide(std::int64_t capacity, std::int64_t end) {
    capacity = std::min(capacity, peaks_.until(upper_ - 1));
    Packer& packer = engine_->packer;
    while (packer.work() < end) {
      const std::int64_t share =
          std::min(shortest_restart() * luby(engine_->restarts + 1), end - packer.work());
      const std::uint32_t number = engine_->restarts++;
      const Packer::Preference preference{engine_->orders.ranks(number), number % 2 == 1};
      switch (packer.pack(capacity, preference, share)) {
        case Packer::Outcome::found:
          keep(packer.offsets());
          return;
        case Packer::Outcome::impossible:
          lower_ = peaks_.above(capacity);
          return;
        case Packer::Outcome::gave_up:
          break;
      }
    }
    given_up_ = capacity;
  }

  Leaf leaf_;
  Need need_;
  Peaks peaks_;
  std::int64_t lower_ = 0;
  std::int64_t upper_ = 0;
  std::vector<std::int64_t> best_;
  std::unique_ptr<Engine> engine_;  // once it is needed
  bool tried_ = false;
  bool improved_ = false;                 // by neighbourhoods
  bool hurry_ = false;                    // the budget is a few dives
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
      need_of(*highest_bound).work > std::max(limits.work, limits.first_dive)) {
    return search_neighbourhoods(instance, limits);
  }
  Packing result{std::move(leaves.offsets), limits.lower_bound};
  std::vector<std::unique_ptr<LeafSearch>> searches;
  for (Leaf& leaf : leaves.leaves) {
    const bool whole = leaf.instance.items.size() == instance.items.size();
    if (whole) leaf.lower_bound = limits.lower_bound;
    std::vector<std::int64_t> incumbent;
    if (whole && limits.incumbent != nullptr) {
      for (const Item& item : leaf.instance.items)
        incumbent.push_back((*limits.incumbent)[item.buffer]);
    }
    searches.push_back(std::make_unique<LeafSearch>(std::move(leaf), incumbent));
  }
  std::int64_t work = limits.work;
  std::int64_t dives = limits.first_dive;
  while (work > 0 && !searches.empty()) {
    // Only the highest leaf counts, and only down to where another bound ends.
    LeafSearch& highest =
        **std::max_element(searches.begin(), searches.end(),
                           [](const auto& a, const auto& b) { return a->upper() < b->upper(); });
    for (const auto& leaf : searches) {
      result.lower_bound = std::max(result.lower_bound, leaf->lower());
    }
    if (highest.upper() <= result.lower_bound) break;
    const Need need = highest.need();
    if (need.dive && highest.untried() && need.work <= dives) {
      dives -= highest.step(result.lower_bound, need.work);
      if (need.work > work) highest.end_steps();
    } else if (need.work <= work) {
      work -= highest.step(result.lower_bound, work);
    } else {
      // Half of what is left: another leaf may be the highest then.
      const std::int64_t share = (work + 1) / 2;
      if (!highest.improve(share)) break;
      work -= share;
    }
  }
  for (const auto& leaf : searches) {
    result.lower_bound = std::max(result.lower_bound, leaf->lower());
    leaf->write_to(result.offsets);
  }
  return result;
}

}  // namespace arenite::plan
