// How a backward block gets what it reads of its forward block.
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include "src/graph/passes/backward.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
/// Views of what is brought are made anew, where they are needed.
void Backward::restore(RegionId backward, RegionId forward, const Bring& bring) {
  std::map<ValueId, ValueId> restored;
  std::size_t position = 0;  // of the backward block's op that is looked at
  const auto made_there = [&](ValueId id) {
    const OpId producer = graph()[id].producer;
    return producer ? stands_in(forward, producer) : graph()[id].parameter_of == forward;
  };
  const auto known = [&](ValueId id) -> std::optional<ValueId> {
    if (!id || !made_there(id)) return id;
    const auto found = restored.find(id);
    return found == restored.end() ? std::nullopt : std::optional(found->second);
  };
  const auto find = [&](ValueId wanted) {
    // Views wait for what they are views of: a worklist, as they may be many.
    std::vector<ValueId> pending{wanted};
    while (!pending.empty()) {
      const ValueId id = pending.back();
      if (known(id)) {
        pending.pop_back();
        continue;
      }
      const OpId producer = graph()[id].producer;
      if (!producer || !is_view_op(graph(), producer) || graph()[producer].results.size() != 1) {
        restored[id] = bring(id, position);
        continue;
      }
      const Op view = graph()[producer];
      const auto waits = std::ranges::find_if(view.operands, [&](ValueId v) { return !known(v); });
      if (waits != view.operands.end()) {
        pending.push_back(*waits);
        continue;
      }
      std::vector<ValueId> operands;
      for (ValueId operand : view.operands) operands.push_back(*known(operand));
      restored[id] =
          add_into(backward, position++, view.name(), std::move(operands), view.attributes);
    }
    return *known(wanted);
  };
  const auto visit = [&](const auto& self, RegionId region) -> void {
    const std::vector<OpId> ops = graph()[region].ops;
    for (OpId id : ops) {
      std::vector<ValueId> operands = graph()[id].operands;
      for (ValueId& operand : operands) operand = find(operand);
      builder_.graph()[id].operands = std::move(operands);
      move_views(builder_.graph(), id);
      const std::vector<RegionId> inner = graph()[id].regions;
      for (RegionId deeper : inner) self(self, deeper);
      if (region == backward) ++position;
    }
    std::vector<ValueId> results = graph()[region].results;
    for (ValueId& result : results) result = find(result);
    builder_.graph()[region].results = std::move(results);
  };
  visit(visit, backward);
}

/// Lets the block that leaves a result out yield zeros. Nobody will look at them.
void Backward::make_whole(ValueId partial) {
  const Op op = graph()[graph()[partial].producer];
  const std::size_t at = result_index(op, partial);
  const OpContext context = builder_.context;
  builder_.context = context_of(graph()[partial].producer);
  for (RegionId region : op.regions) {
    if (graph()[region].results[at]) continue;
    const ValueId zeros = add_full(region, partial, 0);
    builder_.graph()[region].results[at] = zeros;
  }
  builder_.context = context;
}

/// Among the ops of the region; their number for an op that stands elsewhere.
std::size_t Backward::position_of(RegionId region, OpId op) const {
  const auto& ops = graph()[region].ops;
  return static_cast<std::size_t>(std::find(ops.begin(), ops.end(), op) - ops.begin());
}

bool Backward::stands_in(RegionId region, OpId op) const {
  return position_of(region, op) < graph()[region].ops.size();
}

/// Makes an op in a region that has ended, in front of the one at the position.
ValueId Backward::add_into(RegionId region, std::size_t position, std::string_view op,
                           std::vector<ValueId> operands, const Attributes& attributes) {
  const ValueId result = builder_.add1(op, std::move(operands), attributes);
  Graph& graph = builder_.graph();
  std::vector<OpId>& here = graph[into_].ops;
  const OpId id = here.back();
  here.pop_back();
  std::vector<OpId>& ops = graph[region].ops;
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(position), id);
  return result;
}

ValueId Backward::add_full(RegionId region, ValueId like, double number) {
  const auto dims = graph()[like].shape.dims();
  return add_into(region, graph()[region].ops.size(), "full", {},
                  {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                   {"value", number},
                   {"type", std::string(to_string(graph()[like].type))}});
}

}  // namespace arenite::graph
