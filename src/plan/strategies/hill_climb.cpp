#include "src/plan/strategies/hill_climb.hpp"

#include <algorithm>
#include <random>

#include "src/plan/strategies/ordered_fit.hpp"

namespace arenite::plan {
namespace {

/// Below `end`; the same on every platform, which std::uniform_int_distribution is not.
std::size_t below(std::mt19937& random, std::size_t end) { return random() % end; }

class Climber {
 public:
  Climber(const Instance& instance, std::int64_t lower_bound)
      : instance_(instance),
        lower_bound_(lower_bound),
        order_(by_size(instance)),
        offsets_(fit_in_order(instance, order_, Gap::lowest)),
        peak_(peak_of(instance, offsets_)),
        best_(offsets_),
        best_peak_(peak_) {}

  void climb(std::int64_t moves) {
    for (std::int64_t move = 0; move < moves && best_peak_ > lower_bound_; ++move) {
      // From 1/32 of the peak to nothing.
      const double left = 1 - static_cast<double>(move) / static_cast<double>(moves);
      const auto threshold = static_cast<std::int64_t>(static_cast<double>(best_peak_) / 32 * left);
      if (!step(threshold)) return;
    }
  }

  std::vector<std::int64_t> best() && { return std::move(best_); }

 private:
  /// False where no order can help.
  bool step(std::int64_t threshold) {
    const auto& items = instance_.items;
    std::vector<std::size_t> top;  // positions of the movable items that reach the peak
    for (std::size_t p = 0; p < order_.size(); ++p) {
      const std::size_t i = order_[p];
      const std::int64_t end = round_up(offsets_[i] + items[i].bytes, instance_.granule);
      if (items[i].fixed < 0 && end == peak_) top.push_back(p);
    }
    if (top.empty()) return false;
    const std::size_t from = top[below(random_, top.size())];
    const std::size_t item = order_[from];
    std::vector<std::size_t> before;  // positions of what was placed first
    for (std::size_t p = 0; p < from; ++p) {
      if (instance_.conflict(order_[p], item)) before.push_back(p);
    }
    // Nothing is in its way but fixed items: it lies as low as it can.
    if (before.empty()) return false;
    const std::size_t to = before[below(random_, before.size())];
    move(from, to);
    std::vector<std::int64_t> offsets = fit_in_order(instance_, order_, Gap::lowest);
    const std::int64_t peak = peak_of(instance_, offsets);
    if (peak > peak_ + threshold) {
      move(to, from);
      return true;
    }
    offsets_ = std::move(offsets);
    peak_ = peak;
    if (peak_ < best_peak_) {
      best_ = offsets_;
      best_peak_ = peak_;
    }
    return true;
  }

  void move(std::size_t from, std::size_t to) {
    const auto at = [&](std::size_t p) { return order_.begin() + static_cast<std::ptrdiff_t>(p); };
    if (from > to) {
      std::rotate(at(to), at(from), at(from + 1));
    } else {
      std::rotate(at(from), at(from + 1), at(to + 1));
    }
  }

  const Instance& instance_;
  const std::int64_t lower_bound_;
  std::mt19937 random_{1};  // NOLINT(cert-msc51-cpp): plans repeat
  ItemOrder order_;
  std::vector<std::int64_t> offsets_;
  std::int64_t peak_ = 0;
  std::vector<std::int64_t> best_;
  std::int64_t best_peak_ = 0;
};

}  // namespace

Packing hill_climb(const Instance& instance, const Limits& limits) {
  Climber climber(instance, limits.lower_bound);
  const auto n = static_cast<std::int64_t>(instance.items.size());
  // Of a move, in steps of some ten nanoseconds: each item looks at half of the others.
  const std::int64_t cost = 64 + 16 * n + n * n / 3;
  const std::int64_t enough = 20 * n * n;  // few items have few orders
  if (n > 1) climber.climb(std::clamp(limits.work / cost, std::int64_t{8}, enough));
  return {std::move(climber).best(), limits.lower_bound};
}

}  // namespace arenite::plan
