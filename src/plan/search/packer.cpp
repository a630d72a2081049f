#include "src/plan/search/packer.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace arenite::plan {
namespace {

/// What the failures of one call weigh in the next.
constexpr double memory = 0.5;

bool empty(const Bits& set) {
  return std::all_of(set.begin(), set.end(), [](std::uint64_t word) { return word == 0; });
}

}  // namespace

Packer::Packer(const Instance& instance, const Sections& sections)
    : sections_(sections),
      skyline_(instance, sections),
      offsets_(instance.items.size(), 0),
      failures_(sections.count, 0),
      fits_(instance.items.size(), 0),
      near_(sections.words, 0) {
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
    const auto bytes = round_up(item.bytes, instance.granule);
    Kind kind{{of.begin(), of.end()}, bytes, item.alignment};
    twin_.push_back(kinds.try_emplace(std::move(kind), i).first->second);
  }
}

Packer::Outcome Packer::pack(std::int64_t capacity, Preference preference, std::int64_t budget) {
  if (!skyline_.reset(capacity)) return Outcome::impossible;
  preference_ = std::move(preference);
  limit_ = work() + budget;
  for (double& count : failures_) count *= memory;
  frame(0).open = skyline_.all();
  split({0, sections_.count, {}}, frame(0));
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

void Packer::split(const Part& part, Frame& frame) const {
  frame.parts.clear();
  frame.solved = 0;
  if (empty(frame.open)) return;
  if (!sections_.in_time || !has_fallen_apart(part)) {
    frame.parts.push_back({part.first, part.last, frame.open});
    return;
  }
  for (std::size_t s = part.first; s < part.last; ++s) {
    if (skyline_.load(s) == 0) continue;
    if (frame.parts.empty() || skyline_.bridges(s) == 0) {
      frame.parts.push_back({s, s, Bits(sections_.words, 0)});
    }
    Part& piece = frame.parts.back();
    piece.last = s + 1;
    for (std::size_t w = 0; w < sections_.words; ++w) {
      piece.open[w] |= frame.open[w] & sections_.in(s)[w];
    }
  }
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
  nodes_ += 48 + static_cast<std::int64_t>(part.last - part.first) / 3;
  if (work() > limit_) return false;
  frame.part = &part;
  frame.valley = choose_valley(part);
  list_candidates(part, frame.valley, frame.candidates);
  frame.next = 0;
  return true;
}

bool Packer::advance(Frame& frame) {
  const std::size_t count = frame.candidates.size();
  while (frame.next <= count) {
    if (frame.next > 0) {
      skyline_.undo(frame.mark);
      // In nobody's way: then the rest fails wherever it lies.
      const std::size_t last = frame.candidates[frame.next - 1];
      if (!intersect(frame.part->open.data(), sections_.around(last), sections_.words)) {
        return false;
      }
    }
    const std::size_t next = frame.next++;
    frame.mark = skyline_.mark();
    frame.open = frame.part->open;
    if (next < count ? place(frame, frame.candidates[next]) : waste(frame)) {
      split(*frame.part, frame);
      return true;
    }
  }
  skyline_.undo(frame.mark);
  return false;
}

std::size_t Packer::choose_valley(const Part& part) const {
  std::size_t best = part.last;
  double best_need = std::numeric_limits<double>::max();
  const auto consider = [&](std::size_t s) {
    const double need = static_cast<double>(skyline_.slack(s) + 1) / (1 + failures_[s]);
    if (need < best_need) {
      best_need = need;
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
  all_common(part.open.data(), sections_.in(valley), sections_.words, [&](std::size_t i) {
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

bool Packer::place(Frame& frame, std::size_t item) {
  clear_bit(frame.open.data(), item);
  offsets_[item] = skyline_.head(item);
  if (skyline_.place(item, frame.open)) return true;
  ++failures_[skyline_.failed()];
  return false;
}

// None of the section's items lies on its floor. The lowest of them is kept from it by an open
// item of other sections, which then lies below.
bool Packer::waste(Frame& frame) {
  const std::int64_t next = next_floor(*frame.part, frame.valley);
  if (next == std::numeric_limits<std::int64_t>::max()) return false;
  if (skyline_.slack(frame.valley, next) < 0) {
    ++failures_[frame.valley];
    return false;
  }
  if (skyline_.raise(frame.valley, next, frame.open)) return true;
  ++failures_[skyline_.failed()];
  return false;
}

std::int64_t Packer::next_floor(const Part& part, std::size_t valley) {
  const std::int64_t floor = skyline_.floor(valley);
  const std::uint64_t* members = sections_.in(valley);
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  std::fill(near_.begin(), near_.end(), 0);  // what conflicts with one that could lie on the floor
  all_common(part.open.data(), members, sections_.words, [&](std::size_t i) {
    if (skyline_.head(i) > floor) {
      next = std::min(next, skyline_.head(i));
    } else {
      const std::uint64_t* around = sections_.around(i);
      for (std::size_t w = 0; w < sections_.words; ++w) near_[w] |= around[w];
    }
    return true;
  });
  for (std::size_t w = 0; w < sections_.words; ++w) near_[w] &= ~members[w];
  all_common(part.open.data(), near_.data(), sections_.words, [&](std::size_t i) {
    next = std::min(next, skyline_.top(i));
    return true;
  });
  return next;
}

}  // namespace arenite::plan
