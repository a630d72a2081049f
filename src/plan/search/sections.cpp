#include "src/plan/search/sections.hpp"

#include "src/plan/search/search.hpp"

#include <algorithm>
#include <functional>

namespace arenite::plan {
namespace {

/// What is alive when something ends, if something began since the last such moment.
std::vector<Bits> along_the_line(const Instance& instance, std::size_t words) {
  struct Change {
    std::int64_t time;
    std::size_t item;
  };
  std::vector<Change> begins, ends;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    for (const auto [begin, end] : pieces(instance.items[i])) {
      begins.push_back({begin, i});
      ends.push_back({end, i});
    }
  }
  const auto by_time = [](const Change& a, const Change& b) { return a.time < b.time; };
  std::stable_sort(begins.begin(), begins.end(), by_time);
  std::stable_sort(ends.begin(), ends.end(), by_time);

  std::vector<Bits> sections;
  Bits live(words, 0);
  std::size_t begun = 0;
  for (std::size_t ended = 0; ended < ends.size();) {
    const std::int64_t now = ends[ended].time;
    const std::size_t before = begun;
    for (; begun < begins.size() && begins[begun].time < now; ++begun) {
      set_bit(live.data(), begins[begun].item);
    }
    if (begun > before) sections.push_back(live);
    for (; ended < ends.size() && ends[ended].time == now; ++ended) {
      clear_bit(live.data(), ends[ended].item);
    }
  }
  return sections;
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
  result.neighbours.assign(result.items * result.words, 0);

  std::vector<Bits> sections;
  if (result.in_time) {
    sections = along_the_line(instance, result.words);
    for (const Bits& section : sections) {
      visit_bits(section.data(), result.words, [&](std::size_t i) {
        std::uint64_t* row = result.neighbours.data() + i * result.words;
        for (std::size_t w = 0; w < result.words; ++w) row[w] |= section[w];
      });
    }
  } else {
    for (std::size_t i = 0; i < result.items; ++i) {
      for (std::size_t j = 0; j < result.items; ++j) {
        if (i != j && instance.conflict(i, j)) {
          set_bit(result.neighbours.data() + i * result.words, j);
        }
      }
    }
    sections = clique_cover(result.items, result.words, result.neighbours);
  }
  for (std::size_t i = 0; i < result.items; ++i) {
    clear_bit(result.neighbours.data() + i * result.words, i);
  }

  result.count = sections.size();
  std::vector<std::vector<std::int32_t>> of(result.items);
  for (std::size_t s = 0; s < sections.size(); ++s) {
    result.members.insert(result.members.end(), sections[s].begin(), sections[s].end());
    visit_bits(sections[s].data(), result.words,
               [&](std::size_t i) { of[i].push_back(static_cast<std::int32_t>(s)); });
  }
  result.first.push_back(0);
  for (const auto& list : of) {
    result.of_item.insert(result.of_item.end(), list.begin(), list.end());
    result.first.push_back(static_cast<std::int32_t>(result.of_item.size()));
  }
  return result;
}

}  // namespace arenite::plan
