#include "src/plan/overlap.hpp"

#include <algorithm>
#include <map>

namespace arenite::plan {
namespace {

using Pair = std::pair<Placed, Placed>;

// Sweeps over time with the live buffers in address order. As these never overlap each other (the
// sweep ends when they do), a new one can only hit its two neighbours.
std::optional<Pair> sweep_time(const Problem& problem, const std::vector<Placed>& placed) {
  std::vector<Placed> by_begin = placed;
  std::vector<Placed> by_end = placed;
  const auto lifetime = [&](const Placed& p) { return problem[p.buffer].lifetime; };
  const auto top = [&](const Placed& p) { return p.offset + problem[p.buffer].bytes; };
  std::sort(by_begin.begin(), by_begin.end(), [&](const Placed& a, const Placed& b) {
    return lifetime(a).begin < lifetime(b).begin;
  });
  std::sort(by_end.begin(), by_end.end(),
            [&](const Placed& a, const Placed& b) { return lifetime(a).end < lifetime(b).end; });

  std::map<std::int64_t, Placed> live;  // by offset
  std::size_t ended = 0;
  for (const Placed& fresh : by_begin) {
    while (lifetime(by_end[ended]).end <= lifetime(fresh).begin) {
      live.erase(by_end[ended++].offset);
    }
    const auto above = live.lower_bound(fresh.offset);
    if (above != live.end() && above->first < top(fresh)) return Pair{fresh, above->second};
    if (above != live.begin()) {
      const Placed& below = std::prev(above)->second;
      if (top(below) > fresh.offset) return Pair{below, fresh};
    }
    live.emplace(fresh.offset, fresh);
  }
  return std::nullopt;
}

std::optional<Pair> compare_pairs(const Problem& problem, std::vector<Placed> placed) {
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.buffer < b.buffer;
  });
  for (std::size_t a = 0; a < placed.size(); ++a) {
    const std::int64_t top = placed[a].offset + problem[placed[a].buffer].bytes;
    for (std::size_t b = a + 1; b < placed.size() && placed[b].offset < top; ++b) {
      if (problem.conflict(placed[a].buffer, placed[b].buffer)) return Pair{placed[a], placed[b]};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Pair> find_overlap(const Problem& problem, std::span<const Placed> placed) {
  std::map<Space, std::vector<Placed>> spaces;
  for (const Placed& p : placed) {
    if (problem[p.buffer].bytes > 0) spaces[problem[p.buffer].space].push_back(p);
  }
  for (const auto& [space, members] : spaces) {
    const auto pair =
        problem.precedence() ? compare_pairs(problem, members) : sweep_time(problem, members);
    if (pair) return pair;
  }
  return std::nullopt;
}

std::int64_t bytes_covered(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::int64_t covered = 0;
  std::int64_t end = 0;  // of those so far
  for (const ByteRange& range : ranges) {
    covered += std::max<std::int64_t>(0, range.end - std::max(range.begin, end));
    end = std::max(end, range.end);
  }
  return covered;
}

}  // namespace arenite::plan
