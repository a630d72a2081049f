// An `if` goes backward as an `if` on the same condition, whose blocks hold the gradients of the
// forward blocks. It yields a gradient for each value that one of these reads from outside; a block
// that does not depend on the value yields zeros.
//
// What a backward block reads of its forward block becomes a further result of the forward op,
// which the other block leaves out: only the taken side saves anything. Deeper down, where the
// condition itself has to be saved, the other block yields zeros instead, also for results that it
// left out before. Gradients of such results are left out, and become zeros, by the same rule.
#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <map>

#include "src/graph/passes/backward.hpp"
#include "src/graph/values.hpp"

namespace arenite::graph {

void Backward::differentiate_branch(OpId id) {
  const Op op = graph()[id];
  const bool any = std::any_of(op.results.begin(), op.results.end(), [&](ValueId result) {
    return is_loss(result) || parts_.contains(result);
  });
  if (!any) return;

  // A result of one side only has parts that exist there only: they are summed within.
  std::vector<std::vector<ValueId>> given;
  for (ValueId result : op.results) {
    const ValueId whole = is_partial(graph(), result) ? ValueId{} : total(result);
    const auto parts = parts_.find(result);
    given.push_back(whole                   ? std::vector<ValueId>{whole}
                    : parts != parts_.end() ? parts->second
                                            : std::vector<ValueId>{});
  }

  const OpContext context = builder_.context;
  std::vector<ValueId> reached;  // from outside, ascending
  std::vector<RegionId> regions;
  std::vector<std::map<ValueId, ValueId>> gradients(op.regions.size());
  const std::vector<ValueId> captured = sources(id);
  for (std::size_t side = 0; side < op.regions.size(); ++side) {
    const RegionId region = builder_.begin_region(op.name(), op.operands, {}, side);
    regions.push_back(region);
    Backward backward(builder_, op.regions[side], region, wanted_);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId yielded = graph()[op.regions[side]].results[i];
      if (!wanted(yielded)) continue;
      for (ValueId gradient : given[i]) backward.add_part(yielded, gradient);
      if (is_loss(op.results[i])) add_loss_of(backward, id, side, i);
    }
    backward.run();
    for (ValueId source : captured) {
      if (!wanted(source)) continue;
      if (const ValueId gradient = backward.total(source)) gradients[side][source] = gradient;
    }
    builder_.end_region({});
    builder_.context = context;
  }
  for (ValueId source : captured) {
    if (std::any_of(gradients.begin(), gradients.end(),
                    [&](const auto& side) { return side.contains(source); }))
      reached.push_back(source);
  }
  for (std::size_t side = 0; side < regions.size(); ++side) {
    std::vector<ValueId> yielded;
    for (ValueId source : reached) {
      const auto known = gradients[side].find(source);
      // Left out only beside the `if` that made it: what stands deeper yields further out, to where
      // nobody knows which way the condition went.
      const bool elsewhere = is_partial(graph(), source) && side_of(graph(), source) != side &&
                             condition_of(source) == op.operands[0] &&
                             stands_in(forward_, graph()[source].producer);
      yielded.push_back(known != gradients[side].end() ? known->second
                        : elsewhere                    ? ValueId{}
                                                       : add_full(regions[side], source, 0));
    }
    builder_.graph()[regions[side]].results = std::move(yielded);
    restore(regions[side], op.regions[side], [&](ValueId value, std::size_t&) {
      if (is_partial(graph(), value)) make_whole(value);
      return save(id, side, value);
    });
  }
  if (reached.empty()) return;
  const std::vector<ValueId> results = builder_.add(op.name(), op.operands, {}, regions);
  for (std::size_t i = 0; i < reached.size(); ++i) add_part(reached[i], results[i]);
}

ValueId Backward::condition_of(ValueId partial) const {
  return graph()[graph()[partial].producer].operands[0];
}

/// A loss that a block yields is one of the block's.
void Backward::add_loss_of(Backward& block, OpId branch, std::size_t side, std::size_t result) {
  const Op& op = graph()[branch];
  const RegionId region = op.regions[side];
  const ValueId yielded = graph()[region].results[result];
  if (parts_.contains(op.results[result])) refuse_read_loss(branch);
  if (!stands_in(region, graph()[yielded].producer)) {
    fail({.found = "a loss that a block takes from outside, '" + graph()[yielded].name + "'",
          .expected = "one that is made in the block",
          .where = describe(graph(), branch)});
  }
  block.add_loss(yielded);
}

/// One more result of a forward `if`.
ValueId Backward::save(OpId branch, std::size_t side, ValueId value) {
  Graph& graph = builder_.graph();
  const Value& inner = graph[value];
  const ValueId saved = add_with_storage(graph,
                                         {.name = inner.name + ".saved",
                                          .type = inner.type,
                                          .shape = inner.shape,
                                          .layout = inner.layout,
                                          .producer = branch},
                                         StorageClass::activation, graph.root_storage(value).space);
  graph[branch].results.push_back(saved);
  const OpContext context = builder_.context;
  builder_.context = context_of(branch);
  const std::vector<RegionId> regions = graph[branch].regions;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    ValueId yielded = value;
    if (r != side) yielded = forward_ == Graph::body ? ValueId{} : add_full(regions[r], value, 0);
    graph[regions[r]].results.push_back(yielded);
  }
  builder_.context = context;
  return saved;
}

}  // namespace arenite::graph
