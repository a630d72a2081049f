#include "src/plan/strategies/shelf.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace arenite::plan {

template <class Search>
std::int64_t Shelf::with_conflicts_of(std::size_t item, Search search) const {
  if (instance_.words != 0) {
    return search([&](const Entry& e) { return instance_.conflict(item, e.item); });
  }
  return search([begin = instance_.items[item].begin, end = instance_.items[item].end](
                    const Entry& e) { return (begin < e.end) & (e.begin < end); });
}

std::int64_t Shelf::lowest(std::size_t item) const {
  const Item& it = instance_.items[item];
  return with_conflicts_of(item, [&](auto conflict) {
    std::int64_t candidate = 0;
    for (const Run& run : runs_) {
      for (const Entry& entry : run) {
        // Whoever it is, the gap below it is open, and all after it start higher still.
        if (entry.offset >= candidate + it.bytes) return candidate;
        // Without a branch: nobody could predict it.
        const bool lifts = conflict(entry) & (entry.top > candidate);
        candidate = lifts ? round_up(entry.top, it.alignment) : candidate;
      }
    }
    return candidate;
  });
}

std::int64_t Shelf::tightest(std::size_t item, bool tail) const {
  const Item& it = instance_.items[item];
  return with_conflicts_of(item, [&](auto conflict) {
    constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
    std::int64_t best = 0;
    std::int64_t smallest = any;
    std::int64_t top = 0;  // of the conflicting ones so far
    const auto gap_until = [&](std::int64_t end) {
      const std::int64_t offset = round_up(top, it.alignment);
      if (end - offset < it.bytes || end - offset >= smallest) return;
      smallest = end - offset;
      best = offset;
    };
    for (const Run& run : runs_) {
      for (const Entry& entry : run) {
        if (entry.top <= top || !conflict(entry)) continue;
        gap_until(entry.offset);
        top = entry.top;
      }
    }
    if (tail) gap_until(top_);
    return smallest == any ? round_up(top, it.alignment) : best;
  });
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
