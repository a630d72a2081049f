#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <tuple>

namespace arenite::graph {

namespace {

/// Which tasks each task follows, by way of others too: a row of bits a task, as long as it needs.
class Ancestors {
 public:
  void add_task() { rows_.emplace_back(); }
  bool follows(std::size_t task, std::size_t other) const {
    const auto& row = rows_[task];
    return other / 64 < row.size() && (row[other / 64] >> (other % 64) & 1) != 0;
  }
  /// And all that the other one follows.
  void let_follow(std::size_t task, std::size_t other) {
    auto& row = rows_[task];
    const auto& from = rows_[other];
    row.resize(std::max({row.size(), from.size(), other / 64 + 1}));
    for (std::size_t w = 0; w < from.size(); ++w) row[w] |= from[w];
    row[other / 64] |= std::uint64_t{1} << (other % 64);
  }

 private:
  std::vector<std::vector<std::uint64_t>> rows_;
};

class Coarsener {
 public:
  Coarsener(const Graph& graph, const TargetProfile& target)
      : graph_(graph),
        target_(target),
        before_(dependencies(graph)),
        looked_up_(graph.op_count()),
        task_of_(graph.op_count(), none) {}

  Schedule run() {
    std::vector<OpId> ops = graph_[Graph::body].ops;
    std::erase_if(ops, [&](OpId id) { return !runs(id); });
    std::map<int, std::pair<Phase, int>> turns;  // by lane: what its last op is of
    for (OpId id : ops) {
      const Op& op = graph_[id];
      LookedUp& of_op = looked_up_[id.index];
      of_op = {is_staging(graph_, id), target_.microseconds({graph_, op})};
      if (of_op.staging) continue;
      several_lanes_ = several_lanes_ || op.lane > 0;
      only_lane_ = std::max(only_lane_, op.lane);
      if (op.lane != Op::shared_lane && op.phase != Phase::update) {
        auto& [last, turn] = turns.try_emplace(op.lane, op.phase, 0).first->second;
        if (last == Phase::backward && op.phase != last) ++turn;
        last = op.phase;
        of_op.turn = turn;
      }
      Work& work = work_[{op.lane, op.phase, of_op.turn}];
      work.all += of_op.microseconds;
      work.left = work.all;
    }
    for (OpId id : ops) place(id);
    return sorted();
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Of one lane, phase and turn, without staging.
  struct Work {
    double all = 0, left = 0;  // microseconds; left: of ops not yet in a task
  };

  struct LookedUp {
    bool staging = false;
    double microseconds = 0;
    /// Of its lane, in which shards follow each other: how often it has gone forward again.
    int turn = 0;
  };

  bool runs(OpId id) const {
    if (is_view_op(graph_, id)) return false;  // whatever kernel a script gave it
    return !graph_[id].kernel.empty() || !accesses(graph_, id).empty();
  }

  /// Ops that may share a task: same lane, same space, same phase and turn but on a device, and
  /// staging apart from everything else.
  using Key = std::tuple<int, Space, Phase, int, bool>;

  static bool on_device(const Space& space) { return space.device != DeviceKind::cpu; }

  void place(OpId id) {
    const Op& op = graph_[id];
    const LookedUp& of_op = looked_up_[id.index];
    std::vector<std::size_t> needs;
    for (OpId p : before_.of(id)) {
      if (task_of_[p.index] != none) needs.push_back(task_of_[p.index]);
    }
    // What has to follow the step's own work cannot run ahead of it.
    const bool staging =
        of_op.staging &&
        std::all_of(needs.begin(), needs.end(), [&](std::size_t p) { return tasks_[p].staging; });
    const Space space = space_of(graph_, op);
    const int lane = on_device(space) && !several_lanes_ ? only_lane_ : op.lane;
    const Key key{lane, space, on_device(space) ? Phase::init : op.phase,
                  on_device(space) ? 0 : of_op.turn, staging};
    auto open = open_.find(key);
    const bool join = open != open_.end() && wants_more(tasks_[open->second], id) &&
                      std::none_of(needs.begin(), needs.end(), [&](std::size_t p) {
                        return p != open->second &&
                               (ancestors_.follows(p, open->second) || delays(p, open->second));
                      });
    std::size_t mine = join ? open->second : tasks_.size();
    if (!join) {
      tasks_.push_back({.phase = op.phase, .lane = lane, .space = space, .staging = staging});
      ancestors_.add_task();
      edges_.emplace_back();
      followed_.push_back(false);
      open_[key] = mine;
    }
    tasks_[mine].ops.push_back(id);
    tasks_[mine].microseconds += of_op.microseconds;
    if (!of_op.staging) work_[{op.lane, op.phase, of_op.turn}].left -= of_op.microseconds;
    task_of_[id.index] = mine;
    for (std::size_t p : needs) follow(mine, p);
  }

  /// A lane's task would have to wait for another lane, for the sake of its last op.
  bool delays(std::size_t p, std::size_t open) const {
    const int lane = tasks_[open].lane, other = tasks_[p].lane;
    return lane >= 0 && other >= 0 && lane != other && !ancestors_.follows(open, p);
  }

  /// A task takes ops until it is large enough; all of a small phase, and what would be too little
  /// for a task of its own at a phase's end. Behind several lanes their workers share what all have
  /// in common, which nothing else runs beside.
  bool wants_more(const Task& task, OpId id) const {
    if (on_device(task.space)) return true;
    const Op& op = graph_[id];
    const auto found = work_.find({op.lane, op.phase, looked_up_[id.index].turn});
    const Work work = found == work_.end() ? Work{} : found->second;
    const bool shared = several_lanes_ && (op.lane == Op::shared_lane || op.phase == Phase::update);
    const double least = shared ? target_.shared_task_microseconds() : target_.task_microseconds;
    return (work.all < target_.phase_microseconds && !shared) || work.left < least ||
           task.microseconds < least;
  }

  /// Task `mine` must follow `p`: whoever follows `mine` follows p's ancestors too.
  void follow(std::size_t mine, std::size_t p) {
    if (p == mine || !edges_[mine].insert(p).second) return;
    followed_[p] = true;
    if (ancestors_.follows(mine, p)) return;
    ancestors_.let_follow(mine, p);
    for (std::size_t t = 0; followed_[mine] && t < tasks_.size(); ++t) {
      if (ancestors_.follows(t, mine)) ancestors_.let_follow(t, p);
    }
  }

  /// Renumbers the tasks topologically (smallest first op first) and drops implied edges.
  Schedule sorted() {
    const std::size_t n = tasks_.size();
    std::vector<std::size_t> waiting(n, 0), number(n, none);
    std::vector<std::vector<std::size_t>> behind(n);
    for (std::size_t t = 0; t < n; ++t) {
      waiting[t] = edges_[t].size();
      for (std::size_t p : edges_[t]) behind[p].push_back(t);
    }
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
      for (std::size_t s : behind[t]) {
        if (--waiting[s] == 0) ready.push(s);
      }
    }

    Schedule schedule;
    for (std::size_t t : order) {
      Task task = std::move(tasks_[t]);
      for (std::size_t p : edges_[t]) {
        const bool implied =
            std::any_of(edges_[t].begin(), edges_[t].end(),
                        [&](std::size_t other) { return ancestors_.follows(other, p); });
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
  std::vector<LookedUp> looked_up_;  // by op
  std::vector<std::size_t> task_of_;
  std::vector<Task> tasks_;
  std::vector<std::set<std::size_t>> edges_;  // direct predecessors
  std::vector<bool> followed_;                // whether some task has an edge from it
  Ancestors ancestors_;
  std::map<Key, std::size_t> open_;
  std::map<std::tuple<int, Phase, int>, Work> work_;
  bool several_lanes_ = false;
  int only_lane_ = Op::shared_lane;  // unless there are several
};

}  // namespace

Schedule coarsen(const Graph& graph, const TargetProfile& target) {
  check(target);
  return Coarsener(graph, target).run();
}

}  // namespace arenite::graph
