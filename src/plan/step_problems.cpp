#include "src/plan/step_problems.hpp"

#include <map>

#include "src/base/refuse.hpp"
#include "src/plan/task_order.hpp"

namespace arenite::plan {
namespace {

using graph::Graph;
using graph::Schedule;
using graph::StorageId;

/// Tasks of one lane run in their order: reuse within a lane may rely on it (at the price of an
/// edge). Its parts of updates fill what time is left: no other task of it should wait for one.
std::vector<TaskEdge> lane_edges(const Schedule& schedule) {
  std::vector<TaskEdge> edges;
  std::map<int, std::size_t> previous;
  for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
    const graph::Task& task = schedule.tasks[t];
    if (task.lane == graph::Op::shared_lane || task.staging || task.phase == Phase::update)
      continue;
    if (auto it = previous.find(task.lane); it != previous.end())
      edges.push_back({graph::TaskId(it->second), graph::TaskId(t)});
    previous[task.lane] = t;
  }
  return edges;
}

/// What reuse may rely on.
TaskOrder assumed_order(const Schedule& schedule, InFlight in_flight) {
  if (in_flight.is_lanes()) return TaskOrder(schedule, lane_edges(schedule));
  TaskOrder order(schedule);
  if (!in_flight.is_unlimited()) order.let_at_most(in_flight.tasks());
  return order;
}

class StepProblems {
 public:
  StepProblems(const Graph& graph, const Schedule& schedule, const std::vector<Usage>& usages,
               const StepOptions& options)
      : graph_(graph),
        usage_(usages),
        options_(options),
        order_(assumed_order(schedule, options.in_flight)),
        steps_before_(steps_before(graph, schedule)) {}

  std::vector<StepProblem> run() {
    check_sum();
    if (options_.layout == ArenaLayout::reset) refuse_crossing();
    for (const Space& space : spaces_of(graph_)) {
      if (options_.layout == ArenaLayout::two) {
        add("forward", space, [this](StorageId id) { return !late(id); });
        add("backward", space, [this](StorageId id) { return late(id); });
      } else {
        add("step", space, [](StorageId) { return true; });
      }
    }
    return std::move(problems_);
  }

 private:
  /// Of inputs, outputs and state too, so that no end of a block overflows.
  void check_sum() const {
    std::int64_t sum = 0;
    for_each_root(graph_, [&](StorageId, const graph::Storage& storage) {
      if (storage.bytes > Problem::limit - sum - default_alignment) {
        refuse("storages that pass 2^60 bytes in sum", "a sum of at most 2^60",
               "'" + storage.name + "'");
      }
      sum += round_up(storage.bytes, default_alignment);
    });
  }

  void refuse_crossing() const {
    std::string names;
    int count = 0;
    for_each_root(graph_, [&](StorageId id, const graph::Storage& storage) {
      if (usage_[id.index].output || !is_saved(storage, usage_[id.index])) return;
      if (++count <= 5) names += (names.empty() ? "" : ", ") + storage.name;
    });
    if (count == 0) return;
    if (count > 5) names += ", …";
    refuse(std::to_string(count) + " values cross from forward to backward (" + names + ")",
           "none: one block with a full reset between the phases would destroy them",
           "arena layout 'reset'", "use the layout 'overlay' (one block, sound) or 'two'");
  }

  template <class Chosen>
  void add(const std::string& name, const Space& space, Chosen chosen) {
    StepProblem step{.block = name + block_suffix(space), .space = space};
    step.problem.set_granule(default_alignment);
    std::vector<std::span<const TaskUse>> pieces;
    for_each_root(graph_, [&](StorageId id, const graph::Storage& storage) {
      const Usage& usage = usage_[id.index];
      if (storage.space != space || !is_transient(storage.cls) || usage.output ||
          usage.tasks.empty() || !chosen(id))
        return;
      step.storages.push_back(id);
      step.problem.add(buffer(id));
      for (const auto piece : usage.pieces()) pieces.push_back(piece);
    });
    if (pieces.empty() && !is_default(space)) return;
    step.problem.set_precedence(options_.reuse ? precedence(pieces, order_)
                                               : Precedence(step.problem.size()));
    problems_.push_back(std::move(step));
  }

  Buffer buffer(StorageId id) const {
    const graph::Storage& storage = graph_.storage(id);
    const Usage& usage = usage_[id.index];
    const auto pieces = usage.pieces();
    const auto begin = [&](const TaskUse& use) {
      return static_cast<std::int64_t>(steps_before_[use.task] + use.first);
    };
    const auto end = [&](const TaskUse& use) {
      return static_cast<std::int64_t>(steps_before_[use.task] + use.last + 1);
    };
    std::vector<Lifetime> gaps;
    for (std::size_t i = 1; options_.reuse && i < pieces.size(); ++i)
      gaps.push_back({end(pieces[i - 1].back()), begin(pieces[i].front())});
    return {
        .name = storage.name + "#" + std::to_string(id.index),
        .bytes = storage.bytes,
        .lifetime = {begin(usage.tasks.front()), end(usage.tasks.back())},
        .gaps = std::move(gaps),
        .alignment = default_alignment,
        .space = storage.space,
        .phase = usage.first_phase.value_or(Phase::init),
        .label = is_saved(storage, usage) ? "saved" : std::string(graph::to_string(storage.cls))};
  }

  bool late(StorageId id) const { return usage_[id.index].in_backward_arena(); }

  const Graph& graph_;
  const std::vector<Usage>& usage_;
  const StepOptions& options_;
  const TaskOrder order_;
  const std::vector<std::size_t> steps_before_;  // by task
  std::vector<StepProblem> problems_;
};

}  // namespace

bool is_default(const Space& space) { return to_string(space) == to_string(Space{}); }

std::vector<Space> spaces_of(const Graph& graph) {
  std::map<std::string, Space> named;
  for_each_root(graph, [&](StorageId, const graph::Storage& storage) {
    const auto [it, added] = named.emplace(to_string(storage.space), storage.space);
    if (added || it->second == storage.space) return;
    refuse("space " + it->first + " with capacities of " + std::to_string(it->second.capacity) +
               " and " + std::to_string(storage.space.capacity) + " bytes",
           "one", "'" + storage.name + "'");
  });
  named.emplace(to_string(Space{}), Space{});
  std::vector<Space> spaces{named.at(to_string(Space{}))};
  for (const auto& [name, space] : named) {
    if (!is_default(space)) spaces.push_back(space);
  }
  return spaces;
}

bool is_saved(const graph::Storage& storage, const Usage& usage) {
  return is_transient(storage.cls) && !usage.in_backward_arena() && usage.backward;
}

std::vector<StepProblem> step_problems(const Graph& graph, const Schedule& schedule,
                                       const std::vector<Usage>& usages,
                                       const StepOptions& options) {
  return StepProblems(graph, schedule, usages, options).run();
}

std::vector<StepProblem> step_problems(const Graph& graph, const Schedule& schedule,
                                       const StepOptions& options) {
  return step_problems(graph, schedule, usages(graph, schedule), options);
}

}  // namespace arenite::plan
