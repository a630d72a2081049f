#include "src/plan/strategies/ordered_fit.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/plan/strategies/shelf.hpp"

namespace arenite::plan {
namespace {

ItemOrder by_index(const Instance& instance) {
  ItemOrder order(instance.items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

template <class Key>
ItemOrder descending(const Instance& instance, Key key) {
  ItemOrder order = by_index(instance);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return key(instance.items[a]) > key(instance.items[b]);
  });
  return order;
}

}  // namespace

std::vector<std::int64_t> fit_in_order(const Instance& instance, const ItemOrder& order, Gap gap) {
  const auto& items = instance.items;
  std::vector<std::int64_t> offsets(items.size(), 0);
  Shelf shelf(instance);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].fixed < 0) continue;
    offsets[i] = items[i].fixed;
    shelf.insert(i, offsets[i]);
  }
  // What is over by then is in nobody's way.
  const bool forget = instance.words == 0 &&
                      std::is_sorted(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                        return items[a].begin < items[b].begin;
                      });
  const Item* previous = nullptr;
  for (const std::size_t i : order) {
    if (items[i].fixed >= 0) continue;
    if (forget && previous != nullptr && previous->begin < items[i].begin) {
      shelf.forget_until(items[i].begin);
    }
    offsets[i] = gap == Gap::lowest ? shelf.lowest(i) : shelf.tightest(i, gap == Gap::free_block);
    shelf.insert(i, offsets[i]);
    previous = &items[i];
  }
  return offsets;
}

ItemOrder by_size(const Instance& instance) {
  return descending(instance, [](const Item& item) { return std::pair(item.bytes, item.extent); });
}

// A double holds these products with a relative error of 2^-53, the same on every machine.
ItemOrder by_area(const Instance& instance) {
  return descending(instance, [](const Item& item) {
    const double area = static_cast<double>(item.bytes) * static_cast<double>(item.extent);
    return std::pair(area, item.bytes);
  });
}

ItemOrder by_extent(const Instance& instance) {
  return descending(instance, [](const Item& item) { return std::pair(item.extent, item.bytes); });
}

ItemOrder by_conflicts(const Instance& instance) {
  const auto& items = instance.items;
  std::vector<std::int64_t> conflicts;
  if (instance.words != 0) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      conflicts.push_back(static_cast<std::int64_t>(conflicts_of(instance, i)));
    }
  } else {
    // All that begin before its end, but those that end before it begins.
    std::vector<std::int64_t> begins;
    std::vector<std::int64_t> ends;
    for (const Item& item : items) {
      begins.push_back(item.begin);
      ends.push_back(item.end);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (const Item& item : items) {
      const auto begun = std::lower_bound(begins.begin(), begins.end(), item.end) - begins.begin();
      const auto over = std::upper_bound(ends.begin(), ends.end(), item.begin) - ends.begin();
      conflicts.push_back(begun - over);
    }
  }
  ItemOrder order = by_index(instance);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(conflicts[a], items[a].bytes) > std::pair(conflicts[b], items[b].bytes);
  });
  return order;
}

ItemOrder in_time(const Instance& instance) {
  return descending(instance, [](const Item& item) { return -item.begin; });
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
  for (const std::size_t i : in_time(instance)) {
    if (instance.items[i].fixed >= 0) continue;
    offsets[i] = round_up(top, instance.items[i].alignment);
    top = offsets[i] + instance.items[i].bytes;
  }
  return offsets;
}

}  // namespace arenite::plan
