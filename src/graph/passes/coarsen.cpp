#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace arenite::graph {

namespace {

using Bits = std::vector<bool>;

class Coarsener {
 public:
  Coarsener(const Graph& graph, const TargetProfile& target)
      : graph_(graph),
        target_(target),
        before_(dependencies(graph)),
        task_of_(graph.op_count(), none) {}

  Schedule run() {
    for (OpId id : graph_[Graph::body].ops) {
      const Op& op = graph_[id];
      if (!runs(id) || is_staging(graph_, id)) continue;
      several_lanes_ = several_lanes_ || op.lane > 0;
      only_lane_ = std::max(only_lane_, op.lane);
      Work& work = work_[{op.lane, op.phase}];
      work.all += target_.microseconds({graph_, op});
      work.left = work.all;
    }
    for (OpId id : graph_[Graph::body].ops) {
      if (runs(id)) place(id);
    }
    return sorted();
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Of one lane and phase, without staging.
  struct Work {
    double all = 0, left = 0;  // microseconds; left: of ops not yet in a task
  };

  bool runs(OpId id) const {
    if (is_view_op(graph_, id)) return false;  // whatever kernel a script gave it
    return !graph_[id].kernel.empty() || !accesses(graph_, id).empty();
  }

  /// Ops that may share a task: same lane, same space, same phase but on a device, and staging
  /// apart from everything else.
  using Key = std::tuple<int, Space, Phase, bool>;

  static bool on_device(const Space& space) { return space.device != DeviceKind::cpu; }

  void place(OpId id) {
    const Op& op = graph_[id];
    std::vector<std::size_t> needs;
    for (OpId p : before_.of(id)) {
      if (task_of_[p.index] != none) needs.push_back(task_of_[p.index]);
    }
    // What has to follow the step's own work cannot run ahead of it.
    const bool staging =
        is_staging(graph_, id) &&
        std::all_of(needs.begin(), needs.end(), [&](std::size_t p) { return tasks_[p].staging; });
    const Space space = space_of(graph_, op);
    const int lane = on_device(space) && !several_lanes_ ? only_lane_ : op.lane;
    const Key key{lane, space, on_device(space) ? Phase::init : op.phase, staging};
    auto open = open_.find(key);
    const bool join =
        open != open_.end() && wants_more(tasks_[open->second], op) &&
        std::none_of(needs.begin(), needs.end(), [&](std::size_t p) {
          return p != open->second && (ancestors_[p][open->second] || delays(p, open->second));
        });
    std::size_t mine = join ? open->second : tasks_.size();
    if (!join) {
      tasks_.push_back({.phase = op.phase, .lane = lane, .space = space, .staging = staging});
      ancestors_.emplace_back();
      edges_.emplace_back();
      for (Bits& bits : ancestors_) bits.resize(tasks_.size(), false);
      open_[key] = mine;
    }
    tasks_[mine].ops.push_back(id);
    const double microseconds = target_.microseconds({graph_, op});
    tasks_[mine].microseconds += microseconds;
    if (!is_staging(graph_, id)) work_[{op.lane, op.phase}].left -= microseconds;
    task_of_[id.index] = mine;
    for (std::size_t p : needs) follow(mine, p);
  }

  /// A lane's task would have to wait for another lane, for the sake of its last op.
  bool delays(std::size_t p, std::size_t open) const {
    const int lane = tasks_[open].lane, other = tasks_[p].lane;
    return lane >= 0 && other >= 0 && lane != other && !ancestors_[open][p];
  }

  /// A task takes ops until it is large enough; all of a small phase, and what would be too little
  /// for a task of its own at a phase's end. Behind several lanes their workers share what all have
  /// in common, which nothing else runs beside.
  bool wants_more(const Task& task, const Op& op) const {
    if (on_device(task.space)) return true;
    const auto found = work_.find({op.lane, op.phase});
    const Work work = found == work_.end() ? Work{} : found->second;
    const bool shared = several_lanes_ && (op.lane == Op::shared_lane || op.phase == Phase::update);
    const double least = shared ? target_.shared_task_microseconds() : target_.task_microseconds;
    return (work.all < target_.phase_microseconds && !shared) || work.left < least ||
           task.microseconds < least;
  }

  /// Task `mine` must follow `p`: whoever follows `mine` follows p's ancestors too.
  void follow(std::size_t mine, std::size_t p) {
    if (p == mine || !edges_[mine].insert(p).second) return;
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (t != mine && !ancestors_[t][mine]) continue;
      ancestors_[t][p] = true;
      for (std::size_t a = 0; a < tasks_.size(); ++a) {
        if (ancestors_[p][a]) ancestors_[t][a] = true;
      }
    }
  }

  /// Renumbers the tasks topologically (smallest first op first) and drops implied edges.
  Schedule sorted() {
    const std::size_t n = tasks_.size();
    std::vector<std::size_t> waiting(n, 0), number(n, none);
    for (std::size_t t = 0; t < n; ++t) waiting[t] = edges_[t].size();
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t t = 0; t < n; ++t) {
      if (waiting[t] == 0) ready.push(t);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t t = ready.top();
      ready.pop();
      number[t] = order.size();
      order.push_back(t);
      for (std::size_t s = 0; s < n; ++s) {
        if (edges_[s].count(t) != 0 && --waiting[s] == 0) ready.push(s);
      }
    }

    Schedule schedule;
    for (std::size_t t : order) {
      Task task = std::move(tasks_[t]);
      for (std::size_t p : edges_[t]) {
        const bool implied = std::any_of(edges_[t].begin(), edges_[t].end(),
                                         [&](std::size_t other) { return ancestors_[other][p]; });
        if (!implied) task.predecessors.emplace_back(number[p]);
      }
      std::sort(task.predecessors.begin(), task.predecessors.end());
      schedule.tasks.push_back(std::move(task));
    }
    return schedule;
  }

  const Graph& graph_;
  const TargetProfile& target_;
  const Dependencies before_;
  std::vector<std::size_t> task_of_;
  std::vector<Task> tasks_;
  std::vector<std::set<std::size_t>> edges_;  // direct predecessors
  std::vector<Bits> ancestors_;
  std::map<Key, std::size_t> open_;
  std::map<std::pair<int, Phase>, Work> work_;
  bool several_lanes_ = false;
  int only_lane_ = Op::shared_lane;  // unless there are several
};

}  // namespace

Schedule coarsen(const Graph& graph, const TargetProfile& target) {
  check(target);
  return Coarsener(graph, target).run();
}

}  // namespace arenite::graph
