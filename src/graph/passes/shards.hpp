// Sums of what the lanes of a batch give: of each shard by itself, and of the shards in a tree.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/target.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace arenite::graph {

/// Calls f(part, begin, count) for at most so many parts of `all`, in order, none of them empty;
/// their sizes differ by at most one.
template <class F>
void for_each_part(std::int64_t all, int parts, const F& f) {
  const std::int64_t count = std::min<std::int64_t>(parts, all);
  std::int64_t begin = 0;
  for (std::int64_t part = 0; part < count; ++part) {
    const std::int64_t size = all / count + (part < all % count ? 1 : 0);
    f(static_cast<int>(part), begin, size);
    begin += size;
  }
}

/// What a lane gives, or an op of none, to a sum.
struct Term {
  ValueId value;
  int lane = Op::shared_lane;
};

/// The lane of the op that makes a value; of none where nobody does.
int lane_of(const Graph& graph, ValueId id);

/// Appends the sum of at least one term, in the builder's phase: of each shard's terms in a lane of
/// it, of these sums in no lane, shard 0 first, and then with what is of no lane. With one shard
/// all terms are added in one go, in their lane where they have one in common.
ValueId add_up(Builder& builder, const BatchCut& cut, const std::vector<Term>& terms);

/// Whether an op is a sum over several shards.
bool adds_shards(const Graph& graph, OpId id, const BatchCut& cut);

}  // namespace arenite::graph
