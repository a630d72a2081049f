#include "src/plan/search/skyline.hpp"

#include <algorithm>
#include <limits>

namespace arenite::plan {

Skyline::Skyline(const Instance& instance, const Sections& sections)
    : instance_(instance), sections_(sections), all_(sections.words, 0) {
  const std::size_t n = instance.items.size();
  for (const Item& item : instance.items) {
    bytes_.push_back(instance.stacked(item));
    padding_.push_back(bytes_.back() - instance.counted(item));
    any_fixed_ = any_fixed_ || item.fixed >= 0;
  }
  fixed_around_.resize(n);
  fixed_in_.resize(sections.count);
  most_padding_.resize(sections.count);
  for (std::size_t i = 0; i < n; ++i) {
    for (const auto s : sections.of(i)) {
      std::int64_t& most = most_padding_[static_cast<std::size_t>(s)];
      most = std::max(most, padding_[i]);
    }
    const std::int64_t fixed = instance.items[i].fixed;
    if (fixed < 0) {
      set_bit(all_, i);
      continue;
    }
    const Range range{fixed, fixed + bytes_[i]};
    visit_bits(sections.around(i), [&](std::size_t k) { fixed_around_[k].push_back(range); });
    for (const auto s : sections.of(i)) fixed_in_[static_cast<std::size_t>(s)].push_back(range);
  }
  const auto lower = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  for (auto& ranges : fixed_around_) std::sort(ranges.begin(), ranges.end(), lower);
  for (auto& ranges : fixed_in_) std::sort(ranges.begin(), ranges.end(), lower);
}

bool Skyline::reset(std::int64_t capacity) {
  // What lies highest may be padded beyond the capacity: to the next multiple of the alignment, if
  // it has as much padding.
  const std::int64_t below = capacity / instance_.alignment * instance_.alignment;
  const std::int64_t above = round_up(capacity, instance_.alignment);
  room_.clear();
  for (const std::int64_t most : most_padding_) {
    room_.push_back(most >= above - capacity ? above : below);
  }
  highest_.clear();
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    highest_.push_back(capacity - bytes_[i] + padding_[i]);
  }
  trail_.clear();
  head_.assign(bytes_.size(), 0);
  floor_.assign(sections_.count, 0);
  load_.assign(sections_.count, 0);
  bridges_.assign(sections_.count, 0);
  watched_.assign(sections_.count, 0);
  bool fits = true;
  visit_bits(all_, [&](std::size_t i) {
    for (const auto s : sections_.of(i)) {
      load_[static_cast<std::size_t>(s)] += bytes_[i];
      watched_[static_cast<std::size_t>(s)] = i;
    }
    if (sections_.in_time) {
      const auto [first, last] = sections_.hull(i);
      for (std::size_t s = first; s < last; ++s) ++bridges_[s + 1];
    }
    fits = lift(i, 0) && fits;
  });
  if (any_fixed_) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const std::int64_t fixed = instance_.items[i].fixed;
      fits = fits && fixed <= highest_[i];
    }
  }
  for (std::size_t s = 0; s < sections_.count; ++s) fits = fits && slack(s) >= 0;
  touched_ = {0, sections_.count};
  lifted_ = {};
  changed_ = touched_;
  steps_.clear();
  return fits && update_floors(all_);
}

void Skyline::Sector::include(const Sector& other) noexcept {
  if (other.empty()) return;
  first = empty() ? other.first : std::min(first, other.first);
  last = std::max(last, other.last);
}

// Once over everything at or above `offset` that may be in the way.
std::int64_t Skyline::settle(std::size_t item, std::int64_t offset) const {
  const std::int64_t alignment = instance_.items[item].alignment;
  offset = round_up(offset, alignment);
  for (const Range& range : fixed_around_[item]) {
    if (range.begin >= offset + bytes_[item]) break;
    if (range.end > offset) offset = round_up(range.end, alignment);
  }
  return offset;
}

// Of the fixed bytes, those that open items of the section cannot have.
std::int64_t Skyline::fixed_above(std::size_t section, std::int64_t floor) const noexcept {
  std::int64_t sum = 0;
  for (const Range& range : fixed_in_[section]) {
    sum += std::max<std::int64_t>(0, range.end - std::max(range.begin, floor));
  }
  return sum;
}

void Skyline::touch(std::size_t item) {
  const auto of = sections_.of(item);
  touched_.include({static_cast<std::size_t>(of.front()), static_cast<std::size_t>(of.back()) + 1});
}

bool Skyline::lift(std::size_t item, std::int64_t offset) {
  set(head_[item], settle(item, offset));
  touch(item);
  if (head_[item] <= highest_[item]) return true;
  failed_ = static_cast<std::size_t>(sections_.of(item).front());
  return false;
}

bool Skyline::place(std::size_t item, const Bits& open) {
  const std::size_t before = mark();
  const std::int64_t above = top(item);
  touched_ = {};
  touch(item);
  // On a line without gaps that is where the item is.
  lifted_ = sections_.line ? touched_ : Sector{};
  lifted_to_ = above;
  for (const auto s : sections_.of(item)) {
    std::int64_t& load = load_[static_cast<std::size_t>(s)];
    set(load, load - bytes_[item]);
  }
  if (sections_.in_time) {
    const auto [first, last] = sections_.hull(item);
    for (std::size_t s = first; s < last; ++s) set(bridges_[s + 1], bridges_[s + 1] - 1);
  }
  return finish(before, lift_all(sections_.around(item), above, open), open);
}

bool Skyline::raise(std::size_t section, std::int64_t offset, const Bits& open) {
  const std::size_t before = mark();
  touched_ = {};
  lifted_ = {section, section + 1};
  lifted_to_ = offset;
  return finish(before, lift_all(sections_.in(section), offset, open), open);
}

bool Skyline::finish(std::size_t mark, bool fits, const Bits& open) {
  fits = fits && update_floors(open);
  steps_.push_back({mark, touched_});
  changed_.include(touched_);
  return fits;
}

bool Skyline::lift_all(Row items, std::int64_t offset, const Bits& open) {
  return all_common(open, items, [&](std::size_t i) {
    ++work_;
    return head_[i] >= offset || lift(i, offset);
  });
}

bool Skyline::update_floors(const Bits& open) {
  for (std::size_t s = touched_.first; s < touched_.last; ++s) {
    if (load_[s] == 0) continue;
    const std::size_t watched = watched_[s];
    const bool held = head_[watched] == floor_[s] && has_bit(open, watched);
    if (held) continue;
    const bool lifted = s >= lifted_.first && s < lifted_.last;
    const std::int64_t least = lifted ? std::max(floor_[s], lifted_to_) : floor_[s];
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    all_common(open, sections_.in(s), [&](std::size_t i) {
      ++work_;
      if (head_[i] >= lowest) return true;
      lowest = head_[i];
      watched_[s] = i;
      return lowest != least;
    });
    if (lowest == floor_[s]) continue;
    set(floor_[s], lowest);
    if (slack(s) < 0) {
      failed_ = s;
      return false;
    }
  }
  work_ += static_cast<std::int64_t>(touched_.last - touched_.first) / 8 + 1;
  return true;
}

void Skyline::undo(std::size_t mark) noexcept {
  while (trail_.size() > mark) {
    *trail_.back().where = trail_.back().old;
    trail_.pop_back();
  }
  for (; !steps_.empty() && steps_.back().mark >= mark; steps_.pop_back()) {
    changed_.include(steps_.back().touched);
  }
}

}  // namespace arenite::plan
