#include "src/plan/search/leaves.hpp"

#include <algorithm>
#include <numeric>

#include "src/plan/bound.hpp"

namespace arenite::plan {
namespace {

using Items = std::vector<std::size_t>;

/// Of many, those of near numbers are alive together, so that sets of them are short.
constexpr std::size_t many = 4096;

Instance subset(const Instance& whole, Items items) {
  if (items.size() > many) {
    std::stable_sort(items.begin(), items.end(),
                     [&](auto a, auto b) { return whole.items[a].begin < whole.items[b].begin; });
  }
  Instance part;
  part.alignment = whole.alignment;
  part.granule = whole.granule;
  for (const std::size_t i : items) {
    part.items.push_back(whole.items[i]);
    part.items.back().buffer = i;
  }
  fill_rows(part);
  return part;
}

/// The items in pieces, none of which has an item alive together with one of another.
std::vector<Items> components(const Instance& instance, Items items) {
  std::stable_sort(items.begin(), items.end(), [&](auto a, auto b) {
    return instance.items[a].begin < instance.items[b].begin;
  });
  std::vector<Items> result;
  std::int64_t end = 0;
  for (const std::size_t i : items) {
    if (result.empty() || instance.items[i].begin >= end) {
      result.emplace_back();
      end = instance.items[i].end;
    }
    result.back().push_back(i);
    end = std::max(end, instance.items[i].end);
  }
  for (Items& piece : result) std::sort(piece.begin(), piece.end());
  return result;
}

class Splitter {
 public:
  explicit Splitter(const Instance& instance) : instance_(instance) {
    result_.offsets.assign(instance.items.size(), -1);
  }

  Leaves run() && {
    Items all(instance_.items.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const bool fixed = std::any_of(instance_.items.begin(), instance_.items.end(),
                                   [](const Item& item) { return item.fixed >= 0; });
    if (!all.empty() && (!instance_.line || fixed)) {
      Instance whole = instance_;
      for (const std::size_t i : all) whole.items[i].buffer = i;
      result_.leaves.push_back({std::move(whole), 0, 0});
    } else {
      split(std::move(all), 0);
    }
    return std::move(result_);
  }

 private:
  void split(Items items, std::int64_t base) {
    // A loop over work still to do, not recursion: a tower of n spans is n levels deep. What is not
    // split when the patience for such towers ends is a leaf as it is.
    std::size_t patience = 64 * (items.size() + 16);
    std::vector<std::pair<Items, std::int64_t>> todo{{std::move(items), base}};
    while (!todo.empty()) {
      const auto [some, below] = std::move(todo.back());
      todo.pop_back();
      for (Items& piece : components(instance_, some)) {
        std::int64_t bottom = below;
        Items rest = patience < piece.size() ? piece : take_spans(piece, bottom);
        patience -= std::min(patience, piece.size());
        if (rest.size() == piece.size()) {
          Instance leaf = subset(instance_, piece);
          const std::int64_t bound = max_live(leaf).bytes;
          result_.leaves.push_back({std::move(leaf), bottom, bound});
        } else if (!rest.empty()) {
          todo.emplace_back(std::move(rest), bottom);
        }
      }
    }
  }

  /// Places what lives as long as the whole piece, from `bottom` up, and returns the others.
  Items take_spans(const Items& piece, std::int64_t& bottom) {
    std::int64_t begin = instance_.items[piece.front()].begin;
    std::int64_t end = instance_.items[piece.front()].end;
    std::int64_t alignment = instance_.granule;
    for (const std::size_t i : piece) {
      begin = std::min(begin, instance_.items[i].begin);
      end = std::max(end, instance_.items[i].end);
      alignment = std::max(alignment, instance_.items[i].alignment);
    }
    Items rest;
    for (const std::size_t i : piece) {
      const Item& item = instance_.items[i];
      // Padding below others would be a decision, not a necessity.
      if (item.begin == begin && item.end == end && item.gaps.empty() &&
          item.bytes % alignment == 0) {
        result_.offsets[i] = bottom;
        bottom += item.bytes;
      } else {
        rest.push_back(i);
      }
    }
    return rest;
  }

  const Instance& instance_;
  Leaves result_;
};

}  // namespace

Leaves split(const Instance& instance) { return Splitter(instance).run(); }

}  // namespace arenite::plan
