// The ranges that each op of a program claims in the checked build.
#include <arenite/graph/dependencies.hpp>

#include "src/runtime/program_impl.hpp"

#include <algorithm>

namespace arenite::runtime {

Claim Program::Impl::claim(const graph::Access& access, const plan::Placement& place,
                           std::size_t number) {
  const std::int64_t begin = place.offset + access.offset, end = begin + access.bytes;
  return {.first = set.owners[set.block_index(spec, place, number)].at(begin),
          .count = static_cast<std::size_t>((end - 1) / default_alignment -
                                            begin / default_alignment + 1),
          .owner = access.storage.index + 1,
          .reads = access.reads,
          .writes = access.writes};
}

std::vector<Claim> Program::Impl::claim(graph::ValueId id, bool writes, std::size_t number) {
  const graph::Value& value = spec.graph[id];
  const graph::Access access{.storage = spec.graph.root(id),
                             .offset = value.offset,
                             .bytes = byte_size(value.type, value.shape, value.layout),
                             .reads = !writes,
                             .writes = writes};
  const plan::Placement& place = spec.plan.placement(access.storage);
  if (place.external || access.bytes == 0 || !is_transient(spec.graph.storage(access.storage).cls))
    return {};
  return {claim(access, place, number)};
}

std::vector<Claim> Program::Impl::claims_of(graph::OpId id, std::size_t number) {
  const graph::Op& holder = spec.graph[id];
  std::vector<Claim> claims;
  if (!holder.regions.empty()) {
    // What happens within, the ops within claim when they run.
    for (graph::ValueId operand : holder.operands) {
      if (!operand) continue;
      for (const Claim& one : claim(operand, false, number)) claims.push_back(one);
    }
    return claims;
  }
  const auto& ops = spec.graph[graph::Graph::body].ops;
  const auto self = std::find(ops.begin(), ops.end(), id);
  for (const graph::Access& access : graph::accesses(spec.graph, id)) {
    const plan::Placement& place = spec.plan.placement(access.storage);
    if (place.external || !is_transient(spec.graph.storage(access.storage).cls)) continue;
    Claim made = claim(access, place, number);
    // Poisoning is for whoever writes the range first; an earlier op's bytes are not ours to spoil.
    // In a block every trip and every path has to write anew what it reads.
    const bool touched =
        self != ops.end() && std::any_of(ops.begin(), self, [&](graph::OpId earlier) {
          const auto others = graph::accesses(spec.graph, earlier);
          return std::any_of(others.begin(), others.end(), [&](const graph::Access& other) {
            return other.storage == access.storage && other.offset < access.offset + access.bytes &&
                   other.offset + other.bytes > access.offset;
          });
        });
    if (access.writes && !access.reads && !touched) {
      const std::size_t block = set.block_index(spec, place, number);
      made.poisoned = set.blocks[block].data() + place.offset + access.offset;
      made.size = static_cast<std::size_t>(access.bytes);
    }
    claims.push_back(made);
  }
  return claims;
}

}  // namespace arenite::runtime
