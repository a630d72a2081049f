#include "src/plan/step_usage.hpp"

#include <arenite/graph/dependencies.hpp>

#include <algorithm>
#include <numeric>

namespace arenite::plan {

std::vector<Usage> usages(const graph::Graph& graph, const graph::Schedule& schedule) {
  std::vector<Usage> all(graph.storage_count());
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const auto& ops = schedule.tasks[t].ops;
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const Phase phase = graph[ops[at]].phase;
      for (const auto& access : graph::accesses(graph, ops[at])) {
        Usage& usage = all[access.storage.index];
        if (usage.tasks.empty() || usage.tasks.back().task != t) usage.tasks.push_back({t, at, at});
        usage.tasks.back().last = at;
        if (!usage.first_phase) usage.first_phase = phase;
        usage.backward = usage.backward || phase == Phase::backward || phase == Phase::update;
      }
    }
  }
  for (graph::ValueId id : graph.outputs) all[graph.root(id).index].output = true;
  for (std::size_t i = 0; i < graph.storage_count(); ++i) {
    const graph::StorageId id(i);
    if (graph.storage(id).cls == graph::StorageClass::output)
      all[graph.root(id).index].output = true;
  }
  return all;
}

Precedence precedence(std::span<const Usage* const> members, const TaskOrder& order) {
  const std::size_t n = members.size();
  Precedence result(n);
  // Edges lead to higher numbers: only what ends by j's first task can be before j.
  std::vector<std::size_t> by_end(n);
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(members[a]->tasks.back().task, a) <
           std::pair(members[b]->tasks.back().task, b);
  });

  std::vector<std::uint64_t> early;  // the tasks that each task of j follows, or is
  for (std::size_t j = 0; j < n; ++j) {
    const TaskUse& first = members[j]->tasks.front();
    early.assign(first.task / 64 + 1, ~std::uint64_t{0});
    for (const TaskUse& use : members[j]->tasks) {
      const auto row = order.ancestors(use.task);
      for (std::size_t w = 0; w < early.size(); ++w) {
        const std::uint64_t self =
            use.task / 64 == w ? std::uint64_t{1} << (use.task % 64) : std::uint64_t{0};
        early[w] &= row[w] | self;
      }
    }
    for (const std::size_t i : by_end) {
      const TaskUse& last = members[i]->tasks.back();
      if (last.task > first.task) break;
      if (last.task == first.task && last.last >= first.first) continue;
      const auto& tasks = members[i]->tasks;
      const bool all_early = std::all_of(tasks.begin(), tasks.end(), [&](const TaskUse& use) {
        return (early[use.task / 64] >> (use.task % 64) & 1) != 0;
      });
      if (all_early) result.set_before(i, j);
    }
  }
  return result;
}

}  // namespace arenite::plan
