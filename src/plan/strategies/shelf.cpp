#include "src/plan/strategies/shelf.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace arenite::plan {

template <class Visit>
void Shelf::visit_conflicts(std::size_t item, const std::int64_t* from, Visit visit) const {
  const auto walk = [&](auto conflict) {
    for (const Run& run : runs_) {
      for (const Entry& entry : run) {
        if (entry.top > *from && conflict(entry) && !visit(entry)) return;
      }
    }
  };
  if (instance_.words != 0) {
    walk([&](const Entry& e) { return instance_.conflict(item, e.item); });
  } else {
    walk([begin = instance_.items[item].begin, end = instance_.items[item].end](const Entry& e) {
      return (begin < e.end) & (e.begin < end);
    });
  }
}

std::int64_t Shelf::lowest(std::size_t item) const {
  const Item& it = instance_.items[item];
  std::int64_t candidate = 0;
  visit_conflicts(item, &candidate, [&](const Entry& entry) {
    // Those after it start higher still.
    if (entry.offset >= candidate + it.bytes) return false;
    candidate = round_up(entry.top, it.alignment);
    return true;
  });
  return candidate;
}

std::int64_t Shelf::tightest(std::size_t item) const {
  const Item& it = instance_.items[item];
  std::int64_t best = 0;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::int64_t top = 0;  // of the conflicting ones so far
  const auto gap_until = [&](std::int64_t end) {
    const std::int64_t offset = round_up(top, it.alignment);
    if (end - offset >= it.bytes && end - top < smallest) {
      smallest = end - top;
      best = offset;
    }
  };
  visit_conflicts(item, &top, [&](const Entry& entry) {
    gap_until(entry.offset);
    top = entry.top;
    return true;
  });
  gap_until(top_);
  return smallest == std::numeric_limits<std::int64_t>::max() ? round_up(top, it.alignment) : best;
}

void Shelf::insert(std::size_t item, std::int64_t offset) {
  const Item& it = instance_.items[item];
  top_ = std::max(top_, offset + it.bytes);
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

void Shelf::forget_until(std::int64_t time) {
  for (Run& run : runs_) {
    std::erase_if(run, [&](const Entry& entry) { return entry.end <= time; });
  }
  std::erase_if(runs_, [](const Run& run) { return run.empty(); });
}

}  // namespace arenite::plan
