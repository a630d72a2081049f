#include "src/plan/overlap.hpp"

#include <algorithm>
#include <map>

namespace arenite::plan {
namespace {

using Pair = std::pair<Placed, Placed>;

/// Without a gap.
struct Stay {
  Lifetime time;
  Placed placed;
};

// Sweeps over time with the live buffers in address order. As these never overlap each other (the
// sweep ends when they do), a new one can only hit its two neighbours.
std::optional<Pair> sweep_time(const Problem& problem, const std::vector<Placed>& placed) {
  std::vector<Stay> by_begin;
  for (const Placed& p : placed) {
    for (const Lifetime& piece : pieces(problem[p.buffer])) by_begin.push_back({piece, p});
  }
  std::vector<Stay> by_end = by_begin;
  const auto top = [&](const Placed& p) { return p.offset + problem[p.buffer].bytes; };
  std::sort(by_begin.begin(), by_begin.end(),
            [](const Stay& a, const Stay& b) { return a.time.begin < b.time.begin; });
  std::sort(by_end.begin(), by_end.end(),
            [](const Stay& a, const Stay& b) { return a.time.end < b.time.end; });

  std::map<std::int64_t, Placed> live;  // by offset
  std::size_t ended = 0;
  for (const auto& [time, fresh] : by_begin) {
    while (by_end[ended].time.end <= time.begin) live.erase(by_end[ended++].placed.offset);
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
