// How the rows of a large weight are dealt out to lanes: the same way by all passes.
#pragma once

#include <arenite/graph/graph.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace arenite::graph {

/// Of one lane: its worker makes their gradient, updates them and multiplies by them.
struct RowPart {
  int lane = Op::shared_lane;
  std::int64_t begin = 0, end = 0;
};

/// Parts begin at multiples of this: of a vector where lanes should have equal parts, else where
/// kernels begin tiles.
inline std::int64_t row_granule(std::int64_t lanes) noexcept { return lanes > 1 ? 16 : 64; }

/// At most `count` parts of nearly the same size, as many for each lane where there are granules
/// enough. One lane: the parts are nobody's.
inline std::vector<RowPart> row_parts(std::int64_t rows, std::int64_t count, std::int64_t lanes) {
  const std::int64_t granule = row_granule(lanes), granules = (rows + granule - 1) / granule,
                     most = std::min(count, granules),
                     n = most < lanes ? most : most / lanes * lanes;
  std::vector<RowPart> parts;
  for (std::int64_t i = 0; i < n; ++i) {
    parts.push_back({.lane = lanes > 1 ? static_cast<int>(i * lanes / n) : Op::shared_lane,
                     .begin = granules * i / n * granule,
                     .end = std::min(rows, granules * (i + 1) / n * granule)});
  }
  return parts;
}

/// How many lanes there are, by the highest that an op of the body is in.
inline std::int64_t lane_count(const Graph& graph) {
  std::int64_t last = 0;  // a script may say @lane(2147483647)
  for (OpId id : graph[Graph::body].ops) last = std::max<std::int64_t>(last, graph[id].lane);
  return last + 1;
}

}  // namespace arenite::graph
