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

void sort_by_time(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time < b.time; });
}

struct Timeline {
  std::vector<Bits> sections;
  std::vector<std::int64_t> ends;  // of each section: what is alive just before
};

/// What is alive when something ends, if something began since the last such moment.
Timeline along_the_line(const Instance& instance, std::size_t words) {
  std::vector<Change> begins, ends;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    for (const auto [begin, end] : pieces(instance.items[i])) {
      begins.push_back({begin, i});
      ends.push_back({end, i});
    }
  }
  sort_by_time(begins);
  sort_by_time(ends);

  Timeline line;
  Bits live(words, 0);
  std::size_t begun = 0;
  for (std::size_t ended = 0; ended < ends.size();) {
    const std::int64_t now = ends[ended].time;
    const std::size_t before = begun;
    for (; begun < begins.size() && begins[begun].time < now; ++begun) {
      set_bit(live.data(), begins[begun].item);
    }
    if (begun > before) {
      line.sections.push_back(live);
      line.ends.push_back(now);
    }
    for (; ended < ends.size() && ends[ended].time == now; ++ended) {
      clear_bit(live.data(), ends[ended].item);
    }
  }
  return line;
}

/// A row for each item: what conflicts with it.
std::vector<std::uint64_t> neighbours(const Instance& instance, std::size_t words) {
  const std::size_t n = instance.items.size();
  std::vector<std::uint64_t> rows(n * words, 0);
  if (instance.words != 0) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (instance.conflict(i, j)) set_bit(rows.data() + i * words, j);
      }
    }
  } else {
    // What begins before its end, but for what is over when it begins.
    std::vector<Change> begins, ends;
    for (std::size_t i = 0; i < n; ++i) {
      begins.push_back({instance.items[i].begin, i});
      ends.push_back({instance.items[i].end, i});
    }
    sort_by_time(begins);
    sort_by_time(ends);
    Bits begun(words, 0), over(words, 0);
    std::size_t next = 0;
    for (const Change& end : ends) {
      for (; next < n && begins[next].time < end.time; ++next) {
        set_bit(begun.data(), begins[next].item);
      }
      std::copy(begun.begin(), begun.end(), rows.data() + end.item * words);
    }
    next = 0;
    for (const Change& begin : begins) {
      for (; next < n && ends[next].time <= begin.time; ++next) {
        set_bit(over.data(), ends[next].item);
      }
      for (std::size_t w = 0; w < words; ++w) rows[begin.item * words + w] &= ~over[w];
    }
  }
  for (std::size_t i = 0; i < n; ++i) clear_bit(rows.data() + i * words, i);
  return rows;
}

/// Maximal cliques until every pair in conflict is in one of them, and every item.
std::vector<Bits> clique_cover(std::size_t items, std::size_t words,
                               const std::vector<std::uint64_t>& neighbours) {
  std::vector<Bits> sections;
  std::vector<std::uint64_t> uncovered = neighbours;
  Bits covered(words, 0);
  for (std::size_t i = 0; i < items; ++i) {
    const std::uint64_t* open = uncovered.data() + i * words;
    while (!has_bit(covered.data(), i) || std::any_of(open, open + words, std::identity())) {
      Bits clique(words, 0);
      Bits candidates(neighbours.begin() + static_cast<std::ptrdiff_t>(i * words),
                      neighbours.begin() + static_cast<std::ptrdiff_t>((i + 1) * words));
      set_bit(clique.data(), i);
      const auto join = [&](std::size_t j) {
        if (!has_bit(candidates.data(), j)) return;
        set_bit(clique.data(), j);
        for (std::size_t w = 0; w < words; ++w) candidates[w] &= neighbours[j * words + w];
      };
      visit_bits(open, words, join);
      visit_bits(Bits(candidates).data(), words, join);
      visit_bits(clique.data(), words, [&](std::size_t a) {
        for (std::size_t w = 0; w < words; ++w) uncovered[a * words + w] &= ~clique[w];
        set_bit(covered.data(), a);
      });
      sections.push_back(std::move(clique));
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
  result.neighbours = neighbours(instance, result.words);

  Timeline line;
  if (result.in_time) {
    line = along_the_line(instance, result.words);
  } else {
    line.sections = clique_cover(result.items, result.words, result.neighbours);
  }
  const std::vector<Bits>& sections = line.sections;
  result.count = sections.size();
  for (const Bits& section : sections) {
    result.members.insert(result.members.end(), section.begin(), section.end());
  }
  if (result.line) {
    result.numbers.resize(result.count);
    std::iota(result.numbers.begin(), result.numbers.end(), 0);
    const auto& ends = line.ends;
    for (const Item& item : instance.items) {
      const auto first = std::upper_bound(ends.begin(), ends.end(), item.begin);
      const auto last = std::upper_bound(first, ends.end(), item.end);
      result.spans.push_back({static_cast<std::size_t>(first - ends.begin()),
                              static_cast<std::size_t>(last - ends.begin())});
    }
    return result;
  }
  std::vector<std::vector<std::int32_t>> of(result.items);
  for (std::size_t s = 0; s < sections.size(); ++s) {
    visit_bits(sections[s].data(), result.words,
               [&](std::size_t i) { of[i].push_back(static_cast<std::int32_t>(s)); });
  }
  for (const auto& list : of) {
    result.spans.push_back({result.numbers.size(), result.numbers.size() + list.size()});
    result.numbers.insert(result.numbers.end(), list.begin(), list.end());
  }
  return result;
}

}  // namespace arenite::plan
