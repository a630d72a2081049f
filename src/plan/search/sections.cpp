#include "src/plan/search/sections.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "src/plan/search/search.hpp"

namespace arenite::plan {
namespace {

struct Change {
  std::int64_t time;
  std::size_t item;
};

/// When items begin to hold their bytes, and when they cease to, both in order of time.
struct Changes {
  std::vector<Change> begins, ends;
};

Changes changes_of(const Instance& instance) {
  Changes all;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    for (const auto [begin, end] : pieces(instance.items[i])) {
      all.begins.push_back({begin, i});
      all.ends.push_back({end, i});
    }
  }
  for (auto* const changes : {&all.begins, &all.ends}) {
    std::stable_sort(changes->begin(), changes->end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
  }
  return all;
}

struct Timeline {
  Sections::Rows sections;
  std::vector<std::int64_t> ends;  // of each section: what is alive just before
};

/// What is alive when something ends, if something began since the last such moment.
Timeline along_the_line(const Instance& instance, std::size_t words) {
  const auto [begins, ends] = changes_of(instance);
  Timeline line;
  Bits live(words, 0);
  std::size_t begun = 0;
  for (std::size_t ended = 0; ended < ends.size();) {
    const std::int64_t now = ends[ended].time;
    const std::size_t before = begun;
    for (; begun < begins.size() && begins[begun].time < now; ++begun) {
      set_bit(live, begins[begun].item);
    }
    if (begun > before) {
      line.sections.push_back(live);
      line.ends.push_back(now);
    }
    for (; ended < ends.size() && ends[ended].time == now; ++ended) {
      clear_bit(live, ends[ended].item);
    }
  }
  return line;
}

/// A set for each item: what conflicts with it.
std::vector<Bits> conflicts(const Instance& instance, std::size_t words) {
  const std::size_t n = instance.items.size();
  std::vector<Bits> sets;
  for (std::size_t i = 0; i < n; ++i) {
    sets.emplace_back(words, 0);
    for (std::size_t j = 0; j < n; ++j) {
      if (i != j && instance.conflict(i, j)) set_bit(sets[i], j);
    }
  }
  return sets;
}

/// The same for lifetimes without gaps: what is alive when it begins, and what begins in its time.
Sections::Rows conflicts_on_line(const Instance& instance, std::size_t words) {
  const std::size_t n = instance.items.size();
  const auto [begins, ends] = changes_of(instance);
  Sections::Rows rows(n);
  Bits live(words, 0), set;
  std::size_t over = 0;
  for (std::size_t b = 0; b < n; ++b) {
    const auto [now, i] = begins[b];
    for (; over < n && ends[over].time <= now; ++over) clear_bit(live, ends[over].item);
    set = live;
    for (std::size_t next = b + 1; next < n && begins[next].time < instance.items[i].end; ++next) {
      set_bit(set, begins[next].item);
    }
    rows.assign(i, set);
    set_bit(live, i);
  }
  return rows;
}

/// Maximal cliques until every pair in conflict is in one of them, and every item.
Sections::Rows clique_cover(std::size_t words, const std::vector<Bits>& neighbours) {
  Sections::Rows sections;
  std::vector<Bits> uncovered = neighbours;
  Bits covered(words, 0);
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    const Bits& open = uncovered[i];
    while (!has_bit(covered, i) || std::any_of(open.begin(), open.end(), std::identity())) {
      Bits clique(words, 0);
      Bits candidates = neighbours[i];
      set_bit(clique, i);
      const auto join = [&](std::size_t j) {
        if (!has_bit(candidates, j)) return;
        set_bit(clique, j);
        for (std::size_t w = 0; w < words; ++w) candidates[w] &= neighbours[j][w];
      };
      visit_bits(open, join);
      visit_bits(Bits(candidates), join);
      visit_bits(clique, [&](std::size_t a) {
        for (std::size_t w = 0; w < words; ++w) uncovered[a][w] &= ~clique[w];
        set_bit(covered, a);
      });
      sections.push_back(clique);
    }
  }
  return sections;
}

}  // namespace

Sections make_sections(const Instance& instance) {
  Sections result;
  result.items = instance.items.size();
  result.words = (result.items + 63) / 64;
  result.in_time = instance.line && (instance.words == 0 || result.items > most_items_in_an_order);
  result.line = instance.line && instance.words == 0;

  std::vector<std::int64_t> ends;
  if (result.line) {
    result.neighbours = conflicts_on_line(instance, result.words);
  } else {
    const std::vector<Bits> sets = conflicts(instance, result.words);
    for (const Bits& set : sets) result.neighbours.push_back(set);
    if (!result.in_time) result.members = clique_cover(result.words, sets);
  }
  if (result.in_time) {
    Timeline line = along_the_line(instance, result.words);
    result.members = std::move(line.sections);
    ends = std::move(line.ends);
  }
  result.count = result.members.size();
  if (result.line) {
    result.numbers.resize(result.count);
    std::iota(result.numbers.begin(), result.numbers.end(), 0);
    for (const Item& item : instance.items) {
      const auto first = std::upper_bound(ends.begin(), ends.end(), item.begin);
      const auto last = std::upper_bound(first, ends.end(), item.end);
      result.spans.push_back({static_cast<std::size_t>(first - ends.begin()),
                              static_cast<std::size_t>(last - ends.begin())});
    }
    return result;
  }
  std::vector<std::vector<std::int32_t>> of(result.items);
  for (std::size_t s = 0; s < result.count; ++s) {
    visit_bits(result.in(s), [&](std::size_t i) { of[i].push_back(static_cast<std::int32_t>(s)); });
  }
  for (const auto& list : of) {
    result.spans.push_back({result.numbers.size(), result.numbers.size() + list.size()});
    result.numbers.insert(result.numbers.end(), list.begin(), list.end());
  }
  return result;
}

}  // namespace arenite::plan
