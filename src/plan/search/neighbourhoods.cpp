#include "src/plan/search/neighbourhoods.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "src/plan/search/conflicts.hpp"
#include "src/plan/strategies/ordered_fit.hpp"

namespace arenite::plan {
namespace {

// All items together are worth some 2^36, and a price is at most so many times that: no sum of
// prices overflows.
constexpr double worth_of_all = 0x1p36;
constexpr std::int64_t most_failures = std::int64_t{1} << 24;

class Neighbourhoods {
 public:
  explicit Neighbourhoods(const Instance& instance) : instance_(instance), conflicts_(instance) {
    double whole = 0;
    for (const Item& item : instance.items) whole += area(item);
    for (const std::size_t i : conflicts_.items()) {
      worth_.push_back(1 +
                       static_cast<std::int64_t>(area(instance.items[i]) / whole * worth_of_all));
    }
  }

  /// Whether everything now ends at `target` or below; at first it lies at `offsets`, by item.
  /// Gives up when work() reaches `end`.
  bool lower_to(std::int64_t target, const std::vector<std::int64_t>& offsets, std::int64_t end) {
    target_ = target;
    work_ += static_cast<std::int64_t>(worth_.size() / 4);
    failures_.assign(worth_.size(), 1);
    inside_.clear();
    outside_.clear();
    for (std::size_t n = 0; n < worth_.size(); ++n) {
      const std::size_t i = conflicts_.items()[n];
      const Item& item = instance_.items[i];
      inside_.push_back({offsets[i], offsets[i] + item.bytes, worth_[n],
                         static_cast<std::uint32_t>(n), item.fixed >= 0});
      if (inside_[n].high <= target) continue;
      if (item.fixed >= 0 || item.bytes > target) return false;
      take_out(n);
    }
    sort_from(0);
    while (!outside_.empty() && work_ < end) {
      const std::size_t number = outside_.back();
      outside_.pop_back();
      if (!put_in(number)) return false;
    }
    return outside_.empty();
  }

  /// After lower_to() was true.
  std::vector<std::int64_t> offsets() const {
    std::vector<std::int64_t> offsets(inside_.size());
    for (const Standing& standing : inside_) {
      offsets[conflicts_.items()[standing.number]] = standing.low;
    }
    return offsets;
  }
  std::int64_t work() const noexcept { return work_; }

 private:
  struct Standing {
    std::int64_t low = 0;
    std::int64_t high = 0;  // `outside`, where it is
    std::int64_t price = 0;
    std::uint32_t number = 0;
    bool fixed = false;  // not to be had at any price
  };
  static constexpr std::int64_t outside = -1;

  static double area(const Item& item) {
    return static_cast<double>(item.bytes) * static_cast<double>(item.extent);
  }

  const Item& item(std::size_t number) const { return instance_.items[conflicts_.items()[number]]; }

  void take_out(std::size_t number) {
    inside_[number].high = outside;
    outside_.push_back(number);
  }

  // The dearest last, which is the next to be put in.
  void sort_from(std::size_t first) {
    std::sort(outside_.begin() + static_cast<std::ptrdiff_t>(first), outside_.end(),
              [&](std::size_t a, std::size_t b) {
                return std::pair(worth_[a], a) < std::pair(worth_[b], b);
              });
  }

  /// False where fixed items leave no room at all.
  bool put_in(std::size_t number) {
    const Item& it = item(number);
    look_around(number);
    std::optional<std::int64_t> offset = lowest_gap(it);
    if (!offset) {
      failures_[number] = std::min(failures_[number] + 1, most_failures);
      offset = cheapest(it);
      if (!offset) return false;
      const std::size_t before = outside_.size();
      for (const Standing& other : around_) {
        if (other.low >= *offset + it.bytes) break;
        if (other.high > *offset) take_out(other.number);
      }
      sort_from(before);
    }
    Standing& standing = inside_[number];
    standing.low = *offset;
    standing.high = *offset + it.bytes;
    standing.price = worth_[number] * failures_[number];
    return true;
  }

  void look_around(std::size_t number) {
    found_.clear();
    const std::size_t seen = conflicts_.visit(number, [&](std::size_t other) {
      if (inside_[other].high != outside) found_.push_back(inside_[other]);
    });
    sort(found_, &Standing::low, around_);
    work_ += static_cast<std::int64_t>(16 + seen / 4 + found_.size());
  }

  /// By an offset, ascending, ties by number. All are of 0 to the target, and most lie evenly: they
  /// are dealt into about as many bins, and set right within these.
  void sort(const std::vector<Standing>& from, std::int64_t Standing::*key,
            std::vector<Standing>& to) {
    const auto bits = [](std::uint64_t value) { return static_cast<int>(std::bit_width(value)); };
    const int shift = std::max(0, bits(static_cast<std::uint64_t>(target_)) - bits(from.size()));
    bins_.assign(static_cast<std::size_t>(target_ >> shift) + 2, 0);
    for (const Standing& s : from) ++bins_[static_cast<std::size_t>(s.*key >> shift) + 1];
    std::partial_sum(bins_.begin(), bins_.end(), bins_.begin());
    to.resize(from.size());
    for (const Standing& s : from) to[bins_[static_cast<std::size_t>(s.*key >> shift)]++] = s;
    const auto before = [key](const Standing& a, const Standing& b) {
      return std::pair(a.*key, a.number) < std::pair(b.*key, b.number);
    };
    // Each bin now ends where the next one began.
    std::size_t begin = 0;
    for (const std::size_t end : bins_) {
      if (end > begin + 1) {
        std::sort(to.begin() + static_cast<std::ptrdiff_t>(begin),
                  to.begin() + static_cast<std::ptrdiff_t>(end), before);
      }
      begin = std::max(begin, end);
    }
  }

  std::optional<std::int64_t> lowest_gap(const Item& item) const {
    std::int64_t offset = 0;
    for (const Standing& other : around_) {
      if (other.low >= offset + item.bytes) break;
      if (other.high > offset) offset = round_up(other.high, item.alignment);
    }
    if (offset + item.bytes > target_) return std::nullopt;
    return offset;
  }

  /// Where what lies in the way is worth least, the lowest of equals. On the ground or upon
  /// something: what begins above that has at least as much in its way.
  std::optional<std::int64_t> cheapest(const Item& item) {
    sort(around_, &Standing::high, tops_);
    work_ += static_cast<std::int64_t>(2 * around_.size());
    const std::int64_t highest = target_ - item.bytes;
    std::int64_t price = 0;  // of what begins below the item's end, but for what ends below it
    std::int64_t fixed = 0;
    std::int64_t least = 0;
    std::optional<std::int64_t> best;
    std::int64_t offset = 0;
    auto next = around_.begin();
    for (auto over = tops_.begin(); offset <= highest;) {
      for (; next != around_.end() && next->low < offset + item.bytes; ++next) {
        price += next->price;
        fixed += next->fixed ? 1 : 0;
      }
      for (; over != tops_.end() && over->high <= offset; ++over) {
        price -= over->price;
        fixed -= over->fixed ? 1 : 0;
      }
      if (fixed == 0 && (!best || price < least)) {
        least = price;
        best = offset;
      }
      if (over == tops_.end()) break;
      offset = round_up(over->high, item.alignment);
    }
    return best;
  }

  const Instance& instance_;
  Conflicts conflicts_;
  // By number:
  std::vector<std::int64_t> worth_;
  std::vector<std::int64_t> failures_;
  std::vector<Standing> inside_;
  std::vector<std::size_t> outside_;  // a stack
  std::int64_t target_ = 0;
  std::int64_t work_ = 0;
  // Of the item at hand, what stands in its way:
  std::vector<Standing> found_;
  std::vector<Standing> around_;  // by low
  std::vector<Standing> tops_;    // by high
  std::vector<std::size_t> bins_;
};

std::vector<std::int64_t> best_first_fit(const Instance& instance) {
  std::vector<std::int64_t> best;
  for (const auto order : {by_size, by_area, by_extent}) {
    std::vector<std::int64_t> found = fit_in_order(instance, order(instance), Gap::lowest);
    if (best.empty() || peak_of(instance, found) < peak_of(instance, best)) best = std::move(found);
  }
  return best;
}

}  // namespace

Packing search_neighbourhoods(const Instance& instance, const Limits& limits) {
  std::vector<std::int64_t> best =
      limits.incumbent != nullptr ? *limits.incumbent : best_first_fit(instance);
  std::int64_t peak = peak_of(instance, best);
  std::int64_t bound = limits.lower_bound;
  if (peak > bound) {
    Neighbourhoods around(instance);
    const Peaks peaks(instance);
    bound = peaks.above(bound - 1);
    // A target is 1/32 nearer to the bound; where half of the work left does not reach it, half so
    // near.
    for (int shift = 5; around.work() < limits.work && peak > bound;) {
      const std::int64_t way = (peak - bound) >> shift;
      const std::int64_t nearest = peaks.until(peak - 1);
      const std::int64_t target = std::min(nearest, peaks.above(peak - way - 1));
      const std::int64_t share = (limits.work - around.work() + 1) / 2;
      if (around.lower_to(target, best, around.work() + share)) {
        best = around.offsets();
        peak = peak_of(instance, best);
        continue;
      }
      if (target == nearest) break;
      ++shift;
    }
  }
  return {std::move(best), bound};
}

}  // namespace arenite::plan
