// Written from the definitions alone: nothing here is shared with step_plan.cpp or the strategies.
#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/plan/step_plan.hpp>

#include <algorithm>
#include <compare>
#include <iterator>
#include <optional>
#include <set>

#include "src/plan/verify_regions.hpp"

namespace arenite::plan {
namespace {

using graph::Graph;
using graph::OpId;
using graph::StorageClass;
using graph::StorageId;

[[noreturn]] void reject(std::string found, std::string expected) {
  fail({.found = std::move(found), .expected = std::move(expected), .where = "step plan"});
}

class StepVerifier {
 public:
  StepVerifier(const Graph& graph, const graph::Schedule& schedule, const StepPlan& plan)
      : graph_(graph), schedule_(schedule), plan_(plan) {}

  void run() {
    check_tasks();
    order_tasks();
    check_data_dependencies();
    find_outputs();
    check_blocks();
    check_places();
    check_sharing();
    check_regions();
    check_staging();
    check_bounds();
  }

 private:
  struct Point {
    std::size_t task = 0, position = 0;

    friend auto operator<=>(const Point&, const Point&) = default;
  };
  /// The first and the last position in a task that touch a storage.
  struct Use {
    std::size_t task, first, last;
  };

  std::string task_name(std::size_t t) const {
    return "task " + std::to_string(t) + " (" + describe(graph_, schedule_.tasks[t].ops.front()) +
           ")";
  }

  void check_tasks() {
    std::vector<int> seen(graph_.op_count(), 0);
    where_.resize(graph_.op_count());
    uses_.resize(graph_.storage_count());
    points_.resize(graph_.storage_count());
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const auto& ops = schedule_.tasks[t].ops;
      if (ops.empty()) reject("task " + std::to_string(t) + " without ops", "at least one");
      for (std::size_t at = 0; at < ops.size(); ++at) {
        if (ops[at].index >= seen.size())
          reject("op " + std::to_string(ops[at].index) + " in task " + std::to_string(t),
                 "an op of the graph");
        ++seen[ops[at].index];
        where_[ops[at].index] = {t, at};
        for (const graph::Access& access : graph::accesses(graph_, ops[at])) {
          auto& uses = uses_[access.storage.index];
          if (uses.empty() || uses.back().task != t) uses.push_back({t, at, at});
          uses.back().last = at;
          auto& points = points_[access.storage.index];
          if (points.empty() || points.back() != Point{t, at}) points.push_back({t, at});
        }
      }
    }
    std::vector<int> want(graph_.op_count(), 0);
    for (OpId op : graph_[Graph::body].ops) want[op.index] = graph::is_view_op(graph_, op) ? 0 : 1;
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (seen[i] == want[i]) continue;
      if (seen[i] == 0 && graph::accesses(graph_, OpId(i)).empty()) continue;
      reject(describe(graph_, OpId(i)) + " is scheduled " + std::to_string(seen[i]) + " times",
             std::to_string(want[i]) + " times");
    }
  }

  /// Fills a row of bits for each task: the tasks that a path of edges leads from. Edges lead to
  /// higher numbers, so that there is no cycle and rows are final in this order.
  void order_tasks() {
    const std::size_t n = schedule_.tasks.size();
    predecessors_.resize(n);
    for (std::size_t t = 0; t < n; ++t) {
      for (graph::TaskId p : schedule_.tasks[t].predecessors) {
        if (p.index >= t)
          reject(task_name(t) + " with predecessor " + std::to_string(p.index), "an earlier task");
        predecessors_[t].push_back(p.index);
      }
    }
    for (const TaskEdge& reuse : plan_.reuse_edges) {
      if (reuse.before >= reuse.after || reuse.after.index >= n) {
        reject("a reuse edge from task " + std::to_string(reuse.before.index) + " to task " +
                   std::to_string(reuse.after.index) + " of " + std::to_string(n),
               "edges from a task to a later one");
      }
      predecessors_[reuse.after.index].push_back(reuse.before.index);
    }
    words_ = (n + 63) / 64;
    ancestors_.assign(n * words_, 0);
    for (std::size_t t = 0; t < n; ++t) {
      std::uint64_t* mine = ancestors_.data() + t * words_;
      for (std::size_t p : predecessors_[t]) {
        for (std::size_t w = 0; w < words_; ++w) mine[w] |= ancestors_[p * words_ + w];
        mine[p / 64] |= std::uint64_t{1} << (p % 64);
      }
    }
  }

  bool task_before(std::size_t a, std::size_t b) const {
    return (ancestors_[b * words_ + a / 64] >> (a % 64) & 1) != 0;
  }

  void check_data_dependencies() {
    const graph::Dependencies needed = graph::dependencies(graph_);
    for (OpId op : needed.ops) {
      for (OpId first : needed.of(op)) {
        const auto &a = where_[first.index], &b = where_[op.index];
        if (!a || !b) continue;  // touches no bytes
        if (a->task == b->task ? a->position < b->position : task_before(a->task, b->task))
          continue;
        reject(describe(graph_, op) + " may run before " + describe(graph_, first) +
                   ", whose bytes it needs",
               "an edge from " + task_name(a->task) + " to " + task_name(b->task));
      }
    }
  }

  void find_outputs() {
    output_.resize(graph_.storage_count(), false);
    for (graph::ValueId id : graph_.outputs) output_[graph_.root(id).index] = true;
    for (std::size_t i = 0; i < output_.size(); ++i) {
      if (graph_.storage(StorageId(i)).cls == StorageClass::output)
        output_[graph_.root(StorageId(i)).index] = true;
    }
  }

  void check_blocks() {
    std::set<std::string> names;
    for (const BlockPlan& block : plan_.blocks) {
      if (!names.insert(block.name).second)
        reject("two blocks named '" + block.name + "'", "names of their own");
      if (block.bytes < 0 || (block.persistent && block.per_task_set))
        reject("block '" + block.name + "' of " + std::to_string(block.bytes) + " bytes" +
                   (block.persistent ? ", persistent" : "") +
                   (block.per_task_set ? ", one a task set" : ""),
               "at least 0 bytes, and persistent or one a task set, not both");
    }
  }

  void check_places() {
    place_of_.resize(graph_.storage_count(), nullptr);
    std::optional<StorageId> previous;
    for (const Placement& place : plan_.placements) {
      if (place.storage.index >= graph_.storage_count() ||
          graph_.root(place.storage) != place.storage)
        reject("a place for storage " + std::to_string(place.storage.index),
               "places of root storages");
      if (previous && *previous >= place.storage)
        reject("'" + place.name + "' placed out of order or twice", "places by storage id");
      previous = place.storage;
      place_of_[place.storage.index] = &place;
      check_place(place);
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      if (!uses_[i].empty() && place_of_[i] == nullptr)
        reject("'" + graph_.storage(StorageId(i)).name + "' has no place",
               "one: " + task_name(uses_[i].front().task) + " touches it");
    }
  }

  void check_place(const Placement& place) const {
    const graph::Storage& storage = graph_.storage(place.storage);
    if (place.name != storage.name || place.cls != storage.cls)
      reject("'" + place.name + "' of class " + std::string(to_string(place.cls)),
             "'" + storage.name + "' of class " + std::string(to_string(storage.cls)));
    if (place.bytes != storage.bytes)
      reject("'" + storage.name + "' of " + std::to_string(place.bytes) + " bytes",
             std::to_string(storage.bytes));
    const bool constant = storage.cls == StorageClass::constant;
    const bool external = constant && storage.space.device == DeviceKind::cpu;
    if (place.external != external)
      reject("'" + storage.name + "', of class " + std::string(to_string(storage.cls)) +
                 (place.external ? ", bound by address" : ", in a block"),
             "the host's constants bound by address, and nothing else");
    if (place.external) return;
    if (place.block >= plan_.blocks.size())
      reject("'" + storage.name + "' in no block", "a block of the plan");
    const BlockPlan& block = plan_.blocks[place.block];
    if (place.offset < 0 || place.offset % default_alignment != 0)
      reject("'" + storage.name + "' at offset " + std::to_string(place.offset),
             "a multiple of " + std::to_string(default_alignment));
    if (storage.bytes > block.bytes || place.offset > block.bytes - storage.bytes)
      reject("'" + storage.name + "' of " + std::to_string(storage.bytes) + " bytes at offset " +
                 std::to_string(place.offset) + " of block '" + block.name + "' (" +
                 std::to_string(block.bytes) + " bytes)",
             "a place inside its block");
    if (storage.space != block.space)
      reject("'" + storage.name + "' of space " + to_string(storage.space) + " in block '" +
                 block.name + "' of " + to_string(block.space),
             "one space");
    const bool apart = storage.cls == StorageClass::input ||
                       (output_[place.storage.index] && is_transient(storage.cls));
    const bool persistent = constant || is_persistent(storage.cls);
    if (block.persistent != persistent || block.per_task_set != apart)
      reject("'" + storage.name + "' of class " + std::string(to_string(storage.cls)) +
                 (apart && is_transient(storage.cls) ? ", an output," : "") + " in block '" +
                 block.name + "'",
             persistent ? "a persistent block"
             : apart    ? "a block of each task set"
                        : "a block that holds only one step's values");
  }

  void check_sharing() const {
    std::vector<const Placement*> places;
    for (const Placement& place : plan_.placements) {
      if (!place.external && place.bytes > 0) places.push_back(&place);
    }
    std::sort(places.begin(), places.end(), [](const Placement* a, const Placement* b) {
      return std::tie(a->block, a->offset, a->storage) < std::tie(b->block, b->offset, b->storage);
    });
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t j = i + 1; j < places.size(); ++j) {
        if (places[j]->block != places[i]->block ||
            places[j]->offset >= places[i]->offset + places[i]->bytes)
          break;
        check_pair(*places[i], *places[j]);
      }
    }
  }

  void check_pair(const Placement& a, const Placement& b) const {
    const auto both = [&] {
      return "'" + a.name + "' and '" + b.name + "' share bytes of block '" +
             plan_.blocks[a.block].name + "'";
    };
    for (const Placement* p : {&a, &b}) {
      const StorageClass cls = graph_.storage(p->storage).cls;
      if (!is_transient(cls) || output_[p->storage.index])
        reject(both() + ", and '" + p->name + "' is " +
                   (is_transient(cls) ? "an output" : "of class " + std::string(to_string(cls))),
               "bytes of its own");
    }
    if (!may_share(a.storage, b.storage))
      reject(both() + " with no order between their accesses", "an edge for each");
  }

  bool before(const Point& p, const Point& q) const {
    return p.task != q.task ? task_before(p.task, q.task) : p.position < q.position;
  }

  bool may_share(StorageId a, StorageId b) const {
    std::vector<Point> both;
    std::set_intersection(points_[a.index].begin(), points_[a.index].end(),
                          points_[b.index].begin(), points_[b.index].end(),
                          std::back_inserter(both));
    if (both.empty()) return all_before(a, b) || all_before(b, a);
    // What happens within an op that holds regions is for verify_regions to say. It knows of one
    // of the two what comes in, and of one what is needed later.
    if (both.size() > 1 || op_at(both[0].task, both[0].position).regions.empty()) return false;
    const auto x = sides(a, both[0]), y = sides(b, both[0]);
    return x && y && !(x->before && y->before) && !(x->after && y->after);
  }

  struct Sides {
    bool before = false, after = false;
  };

  /// Where the other accesses of a storage are, if each has an order to this one.
  std::optional<Sides> sides(StorageId id, const Point& op) const {
    Sides result;
    for (const Point& point : points_[id.index]) {
      if (point == op) continue;
      const bool earlier = before(point, op);
      if (!earlier && !before(op, point)) return std::nullopt;
      (earlier ? result.before : result.after) = true;
    }
    return result;
  }

  /// Every access of one storage before every access of the other.
  bool all_before(StorageId a, StorageId b) const {
    for (const Use& x : uses_[a.index]) {
      for (const Use& y : uses_[b.index]) {
        if (x.task != y.task ? !task_before(x.task, y.task) : x.last >= y.first) return false;
      }
    }
    return true;
  }

  const graph::Op& op_at(std::size_t task, std::size_t position) const {
    return graph_[schedule_.tasks[task].ops[position]];
  }

  void check_regions() const {
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      const auto& ops = schedule_.tasks[t].ops;
      for (std::size_t at = 0; at < ops.size(); ++at) {
        if (!graph_[ops[at]].regions.empty()) check_regions(t, at);
      }
    }
  }

  void check_regions(std::size_t task, std::size_t position) const {
    std::vector<bool> held(graph_.storage_count(), false), needed = held;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      needed[i] = output_[i];
      for (const Use& use : uses_[i]) {
        const bool same = use.task == task;
        held[i] = held[i] || (same ? use.first < position : task_before(use.task, task));
        needed[i] = needed[i] || (same ? use.last > position : task_before(task, use.task));
      }
    }
    verify_regions(graph_, schedule_.tasks[task].ops[position], place_of_, held, needed);
  }

  /// What runs a step ahead may touch nothing that the step before it touches.
  void check_staging() const {
    const auto expected = "a staging task that runs apart from the step before it";
    for (std::size_t t = 0; t < schedule_.tasks.size(); ++t) {
      if (!schedule_.tasks[t].staging) continue;
      for (std::size_t p : predecessors_[t]) {
        if (!schedule_.tasks[p].staging)
          reject("staging " + task_name(t) + " follows " + task_name(p) + ", which is not staging",
                 expected);
      }
      for (OpId op : schedule_.tasks[t].ops) {
        for (const graph::Access& access : graph::accesses(graph_, op)) {
          const Placement& place = *place_of_[access.storage.index];
          if (place.external || graph_.storage(access.storage).cls == StorageClass::constant ||
              plan_.blocks[place.block].per_task_set)
            continue;
          reject("staging " + task_name(t) + " touches '" + place.name + "' in block '" +
                     plan_.blocks[place.block].name + "', which all steps share",
                 expected);
        }
      }
    }
  }

  void check_bounds() const {
    std::vector<std::int64_t> ends(plan_.blocks.size(), 0);
    for (const Placement& place : plan_.placements) {
      if (place.external || place.bytes == 0) continue;
      const BlockPlan& block = plan_.blocks[place.block];
      if (block.persistent || block.per_task_set) continue;
      ends[place.block] = std::max(ends[place.block], place.offset + place.bytes);
    }
    std::int64_t peak = 0;
    for (std::int64_t end : ends) peak += round_up(end, default_alignment);
    if (plan_.lower_bound > peak)
      reject("a lower bound of " + std::to_string(plan_.lower_bound) + " bytes above the peak of " +
                 std::to_string(peak),
             "a bound not above the peak");
    if (plan_.optimal && plan_.lower_bound != peak)
      reject("'optimal' with a peak of " + std::to_string(peak) + " bytes over a bound of " +
                 std::to_string(plan_.lower_bound),
             "equality");
  }

  const Graph& graph_;
  const graph::Schedule& schedule_;
  const StepPlan& plan_;
  std::vector<std::optional<Point>> where_;  // by op
  std::vector<std::vector<Use>> uses_;       // by root storage, tasks ascending
  std::vector<std::vector<Point>> points_;   // by root storage, ascending
  std::vector<bool> output_;                 // by root storage
  std::vector<const Placement*> place_of_;   // by root storage
  std::vector<std::vector<std::size_t>> predecessors_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> ancestors_;  // words_ a task
};

}  // namespace

void verify_step(const Graph& graph, const graph::Schedule& schedule, const StepPlan& plan) {
  StepVerifier(graph, schedule, plan).run();
}

}  // namespace arenite::plan
