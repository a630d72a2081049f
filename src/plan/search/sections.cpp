#include "src/plan/search/sections.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace arenite::plan {
namespace {

/// What is alive when something ends, if something began since the last such moment.
std::vector<Bits> along_the_line(const Instance& instance, std::size_t words) {
  const auto& items = instance.items;
  std::vector<std::size_t> by_begin(items.size());
  std::iota(by_begin.begin(), by_begin.end(), std::size_t{0});
  std::vector<std::size_t> by_end = by_begin;
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](auto a, auto b) { return items[a].begin < items[b].begin; });
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](auto a, auto b) { return items[a].end < items[b].end; });

  std::vector<Bits> sections;
  Bits live(words, 0);
  std::size_t begun = 0;
  for (std::size_t ended = 0; ended < items.size();) {
    const std::int64_t now = items[by_end[ended]].end;
    const std::size_t before = begun;
    for (; begun < items.size() && items[by_begin[begun]].begin < now; ++begun) {
      set_bit(live.data(), by_begin[begun]);
    }
    if (begun > before) sections.push_back(live);
    for (; ended < items.size() && items[by_end[ended]].end == now; ++ended) {
      clear_bit(live.data(), by_end[ended]);
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
  result.line = instance.words == 0;
  result.neighbours.assign(result.items * result.words, 0);

  std::vector<Bits> sections;
  if (result.line) {
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
