// Whether any two placed buffers that conflict share bytes. Straight from the definition, without
// any code of the strategies: the verifier rests on it.
#pragma once

#include <arenite/plan/problem.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace arenite::plan {

struct Placed {
  std::size_t buffer = 0;
  std::int64_t offset = 0;  ///< at least 0 and far enough below 2^63 for the buffer's bytes
};

/// Some conflicting pair that overlaps in bytes, the lower offset first, if there is one.
/// O(n log n) for lifetimes, up to O(n²) for a precedence.
std::optional<std::pair<Placed, Placed>> find_overlap(const Problem& problem,
                                                      std::span<const Placed> placed);

struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Bytes that at least one of the ranges holds.
std::int64_t bytes_covered(std::vector<ByteRange> ranges);

}  // namespace arenite::plan
