#include "src/plan/search/packer.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

namespace arenite::plan {
namespace {

/// What the failures of one call weigh in the next.
constexpr double memory = 0.5;

}  // namespace

Packer::Packer(const Instance& instance, const Sections& sections)
    : sections_(sections),
      skyline_(instance, sections),
      offsets_(instance.items.size(), 0),
      failures_(sections.count, 0),
      fits_(instance.items.size(), 0),
      near_(sections.words, 0) {
  if (sections.line && sections.count > few_sections) valleys_.emplace(sections.count);
  using Kind = std::tuple<std::vector<std::int32_t>, std::int64_t, std::int64_t>;
  std::map<Kind, std::size_t> kinds;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    if (item.fixed >= 0) {
      offsets_[i] = item.fixed;
      twin_.push_back(i);
      continue;
    }
    const auto of = sections.of(i);
    Kind kind{{of.begin(), of.end()}, instance.counted(item), item.alignment};
    twin_.push_back(kinds.try_emplace(std::move(kind), i).first->second);
  }
}

Packer::Outcome Packer::pack(std::int64_t capacity, Preference preference, std::int64_t budget) {
  if (!skyline_.reset(capacity)) return Outcome::impossible;
  preference_ = std::move(preference);
  limit_ = work() + budget;
  for (double& count : failures_) count *= memory;
  open_ = skyline_.all();
  placed_.clear();
  changed_ = {0, sections_.count};
  frame(0).parts = pieces({0, sections_.count});
  frame(0).solved = 0;
  return solve();
}

Packer::Frame& Packer::frame(std::size_t depth) {
  while (frames_.size() <= depth) frames_.emplace_back();
  return frames_[depth];
}

bool Packer::has_fallen_apart(const Part& part) const {
  for (std::size_t s = part.first + 1; s < part.last; ++s) {
    if (skyline_.bridges(s) == 0) return true;
  }
  return skyline_.load(part.first) == 0;
}

std::vector<Packer::Part> Packer::pieces(const Part& part) const {
  // Without time there is only one, as long as something is open.
  if (!sections_.in_time) {
    const bool open = std::any_of(open_.begin(), open_.end(), std::identity());
    return open ? std::vector<Part>{part} : std::vector<Part>{};
  }
  if (!has_fallen_apart(part)) return {part};
  std::vector<Part> found;
  for (std::size_t s = part.first; s < part.last; ++s) {
    if (skyline_.load(s) == 0) continue;
    if (found.empty() || skyline_.bridges(s) == 0) found.push_back({s, s});
    found.back().last = s + 1;
  }
  return found;
}

Packer::Outcome Packer::solve() {
  std::size_t depth = 0;
  for (;;) {
    Frame& here = frame(depth);
    if (here.solved == here.parts.size()) {
      if (depth == 0) return Outcome::found;
      ++frame(--depth).solved;
      continue;
    }
    if (!enter(here.parts[here.solved], frame(++depth))) return Outcome::gave_up;
    while (!advance(frame(depth))) {
      if (--depth == 0) return Outcome::impossible;
    }
  }
}

bool Packer::enter(const Part& part, Frame& frame) {
  // A node costs what placing some dozen items does, however small the problem is.
  nodes_ += 48 + static_cast<std::int64_t>(std::min(part.last - part.first, few_sections)) / 3;
  if (work() > limit_) return false;
  frame.part = part;
  frame.valley = choose_valley(part);
  list_candidates(part, frame.valley, frame.candidates);
  frame.next = 0;
  return true;
}

bool Packer::advance(Frame& frame) {
  const std::size_t count = frame.candidates.size();
  while (frame.next <= count) {
    if (frame.next > 0) {
      undo(frame);
      // In nobody's way: then the rest fails wherever it lies.
      if (!intersect(open_, sections_.around(frame.candidates[frame.next - 1]))) return false;
    }
    const std::size_t next = frame.next++;
    frame.mark = skyline_.mark();
    frame.placed = placed_.size();
    if (next < count ? place(frame.candidates[next]) : waste(frame)) {
      const bool whole = sections_.line &&
                         (next == count || !has_fallen_apart(frame.part, frame.candidates[next]));
      frame.parts = whole ? std::vector<Part>{frame.part} : pieces(frame.part);
      frame.solved = 0;
      return true;
    }
  }
  undo(frame);
  return false;
}

// Before, some item bridged every two of its sections: only where this one was may that have ended.
bool Packer::has_fallen_apart(const Part& part, std::size_t item) const {
  const auto [first, last] = sections_.hull(item);
  for (std::size_t s = std::max(first, part.first + 1); s <= last; ++s) {
    if (skyline_.bridges(s) == 0) return true;
  }
  return skyline_.load(part.first) == 0;
}

void Packer::undo(const Frame& frame) {
  skyline_.undo(frame.mark);
  for (; placed_.size() > frame.placed; placed_.pop_back()) set_bit(open_, placed_.back());
}

double Packer::need(std::size_t section) const {
  return static_cast<double>(skyline_.slack(section) + 1) / (1 + failures_[section]);
}

void Packer::fail_in(std::size_t section) {
  ++failures_[section];
  changed_.include({section, section + 1});
}

std::size_t Packer::choose_valley(const Part& part) {
  if (valleys_) {
    changed_.include(skyline_.take_changes());
    news_.clear();
    for (std::size_t s = changed_.first; s < changed_.last; ++s) {
      news_.push_back({skyline_.floor(s), need(s)});
    }
    valleys_->change(changed_.first, news_);
    changed_ = {};
    return valleys_->least(part.first, part.last);
  }
  std::size_t best = part.last;
  double best_need = std::numeric_limits<double>::max();
  const auto consider = [&](std::size_t s) {
    if (const double found = need(s); found < best_need) {
      best_need = found;
      best = s;
    }
  };
  if (!sections_.line) {
    // What conflicts with an item may be in any section: only the lowest floor is surely a valley.
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t s = part.first; s < part.last; ++s) {
      if (skyline_.load(s) > 0) lowest = std::min(lowest, skyline_.floor(s));
    }
    for (std::size_t s = part.first; s < part.last; ++s) {
      if (skyline_.load(s) > 0 && skyline_.floor(s) == lowest) consider(s);
    }
    return best;
  }
  for (std::size_t s = part.first; s < part.last;) {
    const std::int64_t floor = skyline_.floor(s);
    std::size_t end = s;
    while (end < part.last && skyline_.floor(end) == floor) ++end;
    const bool left = s == part.first || skyline_.floor(s - 1) > floor;
    const bool right = end == part.last || skyline_.floor(end) > floor;
    for (; s < end; ++s) {
      if (left && right) consider(s);
    }
  }
  return best;
}

void Packer::list_candidates(const Part& part, std::size_t valley, std::vector<std::size_t>& list) {
  list.clear();
  all_common(open_, sections_.in(valley), [&](std::size_t i) {
    if (skyline_.head(i) == skyline_.floor(valley) && may_lie(i)) list.push_back(i);
    return true;
  });
  const auto& ranks = preference_.ranks;
  if (preference_.fit_first && sections_.line) {
    for (const std::size_t i : list) fits_[i] = fit(part, i);
    std::sort(list.begin(), list.end(), [&](auto a, auto b) {
      return fits_[a] != fits_[b] ? fits_[a] > fits_[b] : ranks[a] < ranks[b];
    });
  } else {
    std::sort(list.begin(), list.end(), [&](auto a, auto b) { return ranks[a] < ranks[b]; });
  }
  // Of twins, one is tried.
  std::size_t kept = 0;
  for (const std::size_t i : list) {
    const bool seen = std::any_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(kept),
                                  [&](std::size_t other) { return twin_[other] == twin_[i]; });
    if (!seen) list[kept++] = i;
  }
  list.resize(kept);
}

// Without more waste below it than its sections have to spare. place() would find that too, later.
bool Packer::may_lie(std::size_t item) const {
  const auto of = sections_.of(item);
  return std::all_of(of.begin(), of.end(), [&](std::int32_t section) {
    return skyline_.slack(static_cast<std::size_t>(section), skyline_.head(item)) >= 0;
  });
}

// Two for each side at which it stands against a wall, as it leaves no gap there, and one more
// where it ends level with that wall. So do skyline heuristics for packing strips (Leung, Zhang and
// Sim, "A two-stage intelligent search algorithm for the two-dimensional strip packing problem",
// 2011).
int Packer::fit(const Part& part, std::size_t item) const {
  const auto of = sections_.of(item);
  const auto first = static_cast<std::size_t>(of.front());
  const auto last = static_cast<std::size_t>(of.back());
  const auto beside = [&](bool end_of_part, std::size_t neighbour) {
    if (end_of_part) return 3;
    const std::int64_t wall = skyline_.floor(neighbour);
    return wall <= skyline_.head(item) ? 0 : wall == skyline_.top(item) ? 3 : 2;
  };
  return beside(first == part.first, first - 1) + beside(last + 1 == part.last, last + 1);
}

bool Packer::place(std::size_t item) {
  clear_bit(open_, item);
  placed_.push_back(item);
  offsets_[item] = skyline_.head(item);
  if (skyline_.place(item, open_)) return true;
  fail_in(skyline_.failed());
  return false;
}

// None of the section's items lies on its floor. The lowest of them is kept from it by an open
// item of other sections, which then lies below.
bool Packer::waste(const Frame& frame) {
  const std::int64_t next = next_floor(frame.valley);
  if (next == std::numeric_limits<std::int64_t>::max()) return false;
  if (skyline_.slack(frame.valley, next) < 0) {
    fail_in(frame.valley);
    return false;
  }
  if (skyline_.raise(frame.valley, next, open_)) return true;
  fail_in(skyline_.failed());
  return false;
}

std::int64_t Packer::next_floor(std::size_t valley) {
  const std::int64_t floor = skyline_.floor(valley);
  const Row members = sections_.in(valley);
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  std::fill(near_.begin(), near_.end(), 0);  // what conflicts with one that could lie on the floor
  all_common(open_, members, [&](std::size_t i) {
    if (skyline_.head(i) > floor) {
      next = std::min(next, skyline_.head(i));
    } else {
      for (const auto [w, bits] : sections_.around(i)) near_[w] |= bits;
    }
    return true;
  });
  for (const auto [w, bits] : members) near_[w] &= ~bits;
  visit_common(open_, near_, [&](std::size_t i) { next = std::min(next, skyline_.top(i)); });
  return next;
}

}  // namespace arenite::plan
