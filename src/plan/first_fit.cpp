// Ordered first fit with gap search, and bump.

#include <algorithm>
#include <functional>
#include <numeric>

#include "src/plan/strategy.hpp"

namespace arenite::plan {
namespace {

using Order = std::vector<std::size_t>;

// What is placed so far, in address order. A vector of runs rather than one long vector: inserting
// moves one run's entries only, and the search still reads memory straight on.
class Shelf {
 public:
  explicit Shelf(const Instance& instance) : instance_(instance) {}

  /// The lowest aligned offset at which `item` overlaps nothing that it conflicts with.
  std::int64_t lowest(std::size_t item) const {
    return instance_.words != 0
               ? search(item, [&](const Entry& e) { return instance_.conflict(item, e.item); })
               : search(item,
                        [begin = instance_.items[item].begin, end = instance_.items[item].end](
                            const Entry& e) { return (begin < e.end) & (e.begin < end); });
  }

  void insert(std::size_t item, std::int64_t offset) {
    const Item& it = instance_.items[item];
    auto run = std::find_if(runs_.begin(), runs_.end(),
                            [&](const Run& r) { return r.back().offset >= offset; });
    if (run == runs_.end()) {
      if (runs_.empty()) runs_.emplace_back();
      run = std::prev(runs_.end());
    }
    const auto at =
        std::lower_bound(run->begin(), run->end(), offset,
                         [](const Entry& e, std::int64_t value) { return e.offset < value; });
    run->insert(at, Entry{offset, offset + it.bytes, it.begin, it.end, item});
    if (run->size() > longest_run) {
      Run upper(run->begin() + longest_run / 2, run->end());
      run->resize(longest_run / 2);
      runs_.insert(std::next(run), std::move(upper));
    }
  }

 private:
  struct Entry {
    std::int64_t offset = 0;
    std::int64_t top = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::size_t item = 0;
  };
  using Run = std::vector<Entry>;
  static constexpr std::size_t longest_run = 512;

  // An entry that starts at or above the candidate's end leaves the gap open, whoever it is, and
  // so do all after it, which start higher still.
  template <class Conflict>
  std::int64_t search(std::size_t item, Conflict conflict) const {
    const Item& it = instance_.items[item];
    std::int64_t candidate = 0;
    for (const Run& run : runs_) {
      for (const Entry& entry : run) {
        if (entry.offset >= candidate + it.bytes) return candidate;
        if (entry.top > candidate && conflict(entry)) {
          candidate = round_up(entry.top, it.alignment);
        }
      }
    }
    return candidate;
  }

  const Instance& instance_;
  std::vector<Run> runs_;
};

// Fixed items first: they are where they are.
std::vector<std::int64_t> first_fit(const Instance& instance, const Order& order) {
  std::vector<std::int64_t> offsets(instance.items.size(), 0);
  Shelf shelf(instance);
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    if (instance.items[i].fixed < 0) continue;
    offsets[i] = instance.items[i].fixed;
    shelf.insert(i, offsets[i]);
  }
  for (const std::size_t i : order) {
    if (instance.items[i].fixed >= 0) continue;
    offsets[i] = shelf.lowest(i);
    shelf.insert(i, offsets[i]);
  }
  return offsets;
}

/// Items by descending key, then by index, which is by name.
template <class Key>
Order descending(const Instance& instance, Key key) {
  Order order(instance.items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return key(instance.items[a]) > key(instance.items[b]);
  });
  return order;
}

}  // namespace

std::vector<std::int64_t> first_fit_by_size(const Instance& instance) {
  return first_fit(instance, descending(instance, [](const Item& item) {
                     return std::pair(item.bytes, item.extent);
                   }));
}

// A double holds these products with a relative error of 2^-53, the same on every machine.
std::vector<std::int64_t> first_fit_by_area(const Instance& instance) {
  return first_fit(instance, descending(instance, [](const Item& item) {
                     const double area =
                         static_cast<double>(item.bytes) * static_cast<double>(item.extent);
                     return std::pair(area, item.bytes);
                   }));
}

std::vector<std::int64_t> first_fit_by_extent(const Instance& instance) {
  return first_fit(instance, descending(instance, [](const Item& item) {
                     return std::pair(item.extent, item.bytes);
                   }));
}

std::vector<std::int64_t> bump(const Instance& instance) {
  std::vector<std::int64_t> offsets(instance.items.size(), 0);
  std::int64_t top = 0;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    if (item.fixed < 0) continue;
    offsets[i] = item.fixed;
    top = std::max(top, item.fixed + item.bytes);
  }
  // In program order where there is one.
  Order order(instance.items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return instance.items[a].begin < instance.items[b].begin;
  });
  for (const std::size_t i : order) {
    if (instance.items[i].fixed >= 0) continue;
    offsets[i] = round_up(top, instance.items[i].alignment);
    top = offsets[i] + instance.items[i].bytes;
  }
  return offsets;
}

}  // namespace arenite::plan
