#include "src/runtime/branches.hpp"

#include <arenite/graph/dependencies.hpp>

#include <algorithm>

namespace arenite::runtime {
namespace {

constexpr std::size_t nobody = static_cast<std::size_t>(-1);

bool meet(const Footprint& a, const Footprint& b) {
  return std::ranges::any_of(a.ranges, [&](const Footprint::Range& x) {
    return std::ranges::any_of(b.ranges, [&](const Footprint::Range& y) {
      return (x.writes || y.writes) && x.block == y.block && x.begin < y.end && y.begin < x.end;
    });
  });
}

bool ordered(const Footprint& earlier, const Footprint& later) {
  return meet(earlier, later) || (earlier.reports && later.updates_state) ||
         (earlier.updates_state && later.reports) || (earlier.exclusive && later.exclusive);
}

}  // namespace

std::vector<Footprint> footprints(const ProgramSpec& spec, std::size_t task,
                                  const KernelTable& kernels) {
  std::vector<Footprint> all;
  const graph::Task& of = spec.schedule.tasks.at(task);
  for (const graph::OpId id : of.ops) {
    const graph::Op& op = spec.graph[id];
    Footprint& made = all.emplace_back();
    made.reports = op.definition->fault != nullptr;
    made.exclusive = kernels.at(op, op.kernel, of.space.device).exclusive;
    for (const graph::Access& access : graph::accesses(spec.graph, id)) {
      made.updates_state = made.updates_state ||
                           (access.writes && is_persistent(spec.graph.storage(access.storage).cls));
      const plan::Placement& place = spec.plan.placement(access.storage);
      if (place.external) continue;  // nobody writes it
      made.ranges.push_back({.block = place.block,
                             .begin = place.offset + access.offset,
                             .end = place.offset + access.offset + access.bytes,
                             .writes = access.writes});
    }
  }
  return all;
}

std::vector<BranchedOp> branch(const std::vector<Footprint>& ops, std::size_t most) {
  std::vector<BranchedOp> placed(ops.size());
  std::vector<std::size_t> last(most, nobody);  // of each branch
  // By op: the last op of each branch that it follows, itself included; nobody: none.
  std::vector<std::vector<std::size_t>> known(ops.size(), std::vector<std::size_t>(most, nobody));
  const auto knows = [&](const std::vector<std::size_t>& of, std::size_t op) {
    const std::size_t seen = of[placed[op].branch];
    return seen != nobody && seen >= op;
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::vector<std::size_t> before;
    for (std::size_t j = 0; j < i; ++j) {
      if (ordered(ops[j], ops[i])) before.push_back(j);
    }
    // Behind the latest op that it follows and nobody stands behind; else on a branch of its own;
    // else behind whoever ended first.
    std::size_t chosen = nobody;
    for (const std::size_t j : before) {
      if (last[placed[j].branch] == j) chosen = placed[j].branch;
    }
    if (chosen == nobody) {
      const auto rank = [&](std::size_t op) { return op == nobody ? 0 : op + 1; };
      chosen = static_cast<std::size_t>(std::ranges::min_element(last, {}, rank) - last.begin());
    }
    placed[i].branch = chosen;
    if (last[chosen] != nobody) known[i] = known[last[chosen]];
    for (auto j = before.rbegin(); j != before.rend(); ++j) {  // the latest imply the most
      if (knows(known[i], *j)) continue;
      placed[i].follows.push_back(*j);
      for (std::size_t b = 0; b < most; ++b) {
        const std::size_t theirs = known[*j][b];
        if (theirs != nobody && (known[i][b] == nobody || known[i][b] < theirs))
          known[i][b] = theirs;
      }
    }
    known[i][chosen] = i;
    last[chosen] = i;
  }
  return placed;
}

}  // namespace arenite::runtime
