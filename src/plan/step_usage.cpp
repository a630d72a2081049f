#include "src/plan/step_usage.hpp"

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/liveness.hpp>

#include <algorithm>
#include <numeric>

namespace arenite::plan {

namespace {

class StepCounter {
 public:
  StepCounter(const graph::Graph& graph, const graph::Schedule& schedule) : graph_(graph) {
    if (graph.region_count() == 1) return;
    std::size_t at = 0;
    last_.resize(graph.storage_count(), 0);
    for (const graph::Task& task : schedule.tasks) {
      for (const graph::OpId op : task.ops) {
        ++at;
        for (const auto& access : graph::accesses(graph, op)) last_[access.storage.index] = at;
      }
    }
    for (graph::ValueId id : graph.outputs) last_[graph.root(id).index] = at + 1;
  }

  /// Call one of these once for each op of the schedule, in order.
  std::size_t steps(graph::OpId op) {
    if (!graph_[op].regions.empty()) return next(op).steps;
    ++at_;
    return 1;
  }
  graph::OpLiveness next(graph::OpId op) {
    ++at_;
    if (graph_[op].regions.empty()) {
      graph::OpLiveness live;
      for (const auto& access : graph::accesses(graph_, op))
        live.spans.push_back({access.storage, 0, 0});
      return live;
    }
    std::vector<bool> needed(last_.size());
    for (std::size_t i = 0; i < needed.size(); ++i) needed[i] = last_[i] > at_;
    return graph::liveness(graph_, op, needed);
  }

 private:
  const graph::Graph& graph_;
  std::vector<std::size_t> last_;  // by storage: the number of the last op that touches it
  std::size_t at_ = 0;
};

/// Closes the gaps of a storage in ops that another of its users may run beside: whoever took the
/// bytes there would take them from that user. By the edges of the schedule alone: a gap is to cost
/// none.
void close_gaps(const TaskOrder& order, std::vector<TaskUse>& uses) {
  const auto ordered = [&](std::size_t gap) {
    const std::size_t task = uses[gap].task;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const std::size_t other = uses[i].task;
      if (other != task && !(i < gap ? order.before(other, task) : order.before(task, other)))
        return false;
    }
    return true;
  };
  std::vector<TaskUse> kept;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const bool gap = i > 0 && uses[i].task == uses[i - 1].task;
    if (gap && !ordered(i)) {
      kept.back().last = uses[i].last;
    } else {
      kept.push_back(uses[i]);
    }
  }
  uses = std::move(kept);
}

}  // namespace

std::vector<std::size_t> steps_before(const graph::Graph& graph, const graph::Schedule& schedule) {
  std::vector<std::size_t> before;
  StepCounter counter(graph, schedule);
  std::size_t steps = 0;
  for (const graph::Task& task : schedule.tasks) {
    before.push_back(steps);
    for (graph::OpId op : task.ops) steps += counter.steps(op);
  }
  return before;
}

std::vector<Usage> usages(const graph::Graph& graph, const graph::Schedule& schedule) {
  std::vector<Usage> all(graph.storage_count());
  StepCounter counter(graph, schedule);
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    std::size_t step = 0;
    for (const graph::OpId op : schedule.tasks[t].ops) {
      const Phase phase = graph[op].phase;
      const graph::OpLiveness live = counter.next(op);
      graph::StorageId previous;
      for (const graph::LiveSpan& span : live.spans) {
        Usage& usage = all[span.storage.index];
        // What it holds between two ops stays.
        const bool gap =
            span.storage == previous && step + span.first > usage.tasks.back().last + 1;
        previous = span.storage;
        if (gap || usage.tasks.empty() || usage.tasks.back().task != t)
          usage.tasks.push_back({t, step + span.first, 0});
        usage.tasks.back().last = step + span.last;
        if (!usage.first_phase) usage.first_phase = phase;
        usage.backward = usage.backward || phase == Phase::backward || phase == Phase::update;
      }
      step += live.steps;
    }
  }
  if (graph.region_count() > 1) {
    const TaskOrder order(schedule);
    for (Usage& usage : all) {
      if (usage.pieces().size() > 1) close_gaps(order, usage.tasks);
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

std::vector<std::span<const TaskUse>> Usage::pieces() const {
  std::vector<std::span<const TaskUse>> result;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= tasks.size(); ++i) {
    if (i < tasks.size() && tasks[i].task != tasks[i - 1].task) continue;
    result.push_back(std::span(tasks).subspan(first, i - first));
    first = i;
  }
  return result;
}

Precedence precedence(std::span<const std::span<const TaskUse>> pieces, const TaskOrder& order) {
  const std::size_t n = pieces.size();
  Precedence result(n);
  // Edges lead to higher numbers: only what ends by j's first task can be before j.
  std::vector<std::size_t> by_end(n);
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(pieces[a].back().task, a) < std::pair(pieces[b].back().task, b);
  });

  std::vector<std::uint64_t> early;  // the tasks that each task of j follows, or is
  for (std::size_t j = 0; j < n; ++j) {
    const TaskUse& first = pieces[j].front();
    early.assign(first.task / 64 + 1, ~std::uint64_t{0});
    for (const TaskUse& use : pieces[j]) {
      const auto row = order.ancestors(use.task);
      for (std::size_t w = 0; w < early.size(); ++w) {
        const std::uint64_t self =
            use.task / 64 == w ? std::uint64_t{1} << (use.task % 64) : std::uint64_t{0};
        early[w] &= row[w] | self;
      }
    }
    for (const std::size_t i : by_end) {
      const TaskUse& last = pieces[i].back();
      if (last.task > first.task) break;
      if (last.task == first.task && last.last >= first.first) continue;
      const auto tasks = pieces[i];
      const bool all_early = std::all_of(tasks.begin(), tasks.end(), [&](const TaskUse& use) {
        return (early[use.task / 64] >> (use.task % 64) & 1) != 0;
      });
      if (all_early) result.set_before(i, j);
    }
  }
  return result;
}

}  // namespace arenite::plan
