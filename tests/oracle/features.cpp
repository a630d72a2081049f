#include "tests/oracle/features.hpp"

#include <arenite/graph/dependencies.hpp>

#include <algorithm>
#include <set>

#include "src/graph/versions.hpp"
#include "tests/oracle/touches.hpp"

namespace arenite::oracle {
namespace {

using graph::Graph;
using graph::OpId;
using graph::StorageId;
using graph::ValueId;

bool is_odd(const Shape& shape) {
  return std::ranges::any_of(shape, [](std::int64_t size) { return size > 2 && size % 2 == 1; });
}

class Counter {
 public:
  Counter(const runtime::ProgramSpec& spec, Features& into)
      : spec_(spec), graph_(spec.graph), into_(into), readers_(graph_.value_count()) {}

  void run() {
    count_modes();
    for (OpId id : graph_[Graph::body].ops) {
      count_operands(id);
      count_op(id);
    }
    count_values();
    count_storages();
    count_tasks();
    count_plan();
  }

 private:
  /// Layers that differ by mode, in networks.
  void count_modes() {
    const auto is_running = [&](ValueId id) {
      return graph_[id].name.ends_with(".running_variance");
    };
    if (std::ranges::any_of(graph_.declared(graph::StorageClass::buffer), is_running))
      add("programs of batch_norm");
    if (graph_.find("position")) add("programs of dropout");
    const auto is_waiting = [&](ValueId id) { return graph_[id].name.ends_with(".gradient0"); };
    if (std::ranges::any_of(graph_.declared(graph::StorageClass::optimizer_state), is_waiting))
      add("programs of updates by several batches");
  }

  void add(const std::string& name, std::int64_t n = 1) { into_[name] += n; }

  void count_operands(OpId id) {
    std::set<ValueId> seen;
    for (ValueId operand : graph_[id].operands) {
      if (!operand) continue;
      if (!seen.insert(operand).second) add("operands twice");
      readers_[operand.index].insert(id);
    }
  }

  void count_op(OpId id) {
    const graph::Op& op = graph_[id];
    add("op " + std::string(op.name()));
    if (!op.kernel.empty()) add("kernel " + std::string(op.name()) + "/" + op.kernel);
    if (op.workspace) add("workspaces");
    if (op.phase == Phase::evaluate) add("evaluation ops");
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      if (is_view(graph_, op, r)) add("views");
    }
    graph::for_each_renewed(op, [&](std::size_t result, std::size_t operand) {
      const ValueId old = op.operands[operand];
      const bool transient = graph::is_transient(graph_.root_storage(old).cls);
      add(transient ? "new versions, transient" : "new versions, persistent");
      if (graph_[old].producer) add("new versions of views or results");
      if (graph_.root(old) == graph_.root(op.results[result])) add("new versions in place");
    });
  }

  void count_values() {
    for (OpId id : graph_[Graph::body].ops) {
      const graph::Op& op = graph_[id];
      const auto unused = std::ranges::count_if(op.results, [&](ValueId r) {
        return readers_[r.index].empty() && !is_observed(graph_, graph_.root(r));
      });
      if (op.results.size() > 1) add("ops with several results");
      if (op.results.size() > 1 && unused > 0) add("ops with one of several results unused");
    }
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const graph::Value& value = graph_[ValueId(i)];
      if (readers_[i].size() > 1) add("values with several users");
      if (value.layout.halo > 0) add("halos");
      if (value.shape.elements() == 0) add("empty values");
      if (is_odd(value.shape)) add("odd shapes");
    }
    for (ValueId id : graph_.outputs) {
      const OpId producer = graph_[id].producer;
      add("outputs");
      if (!readers_[id.index].empty()) add("outputs that ops read");
      if (producer && is_view(graph_, graph_[producer], 0)) add("outputs that are views");
      if (!graph::is_transient(graph_.root_storage(id).cls)) add("outputs of inputs or parameters");
    }
  }

  void count_storages() {
    for (std::size_t i = 0; i < graph_.storage_count(); ++i) {
      const StorageId root = graph_.root(StorageId(i));
      if (root != StorageId(i) && !graph::is_persistent(graph_.storage(root).cls))
        add("in-place results");
    }
    std::vector<const plan::Placement*> shared;
    for (const plan::Placement& place : spec_.plan.placements) {
      if (place.saved) add("saved activations");
      if (!place.external && !spec_.plan.blocks[place.block].persistent &&
          !spec_.plan.blocks[place.block].per_task_set && place.bytes > 0)
        shared.push_back(&place);
    }
    for (std::size_t i = 0; i < shared.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const plan::Placement &a = *shared[i], &b = *shared[j];
        if (a.block == b.block && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes)
          add("pairs of storages that share bytes");
      }
    }
  }

  void count_tasks() {
    std::set<int> lanes;
    for (const graph::Task& task : spec_.schedule.tasks) {
      add("tasks");
      if (task.ops.size() > 1) add("tasks of several ops");
      if (task.staging) add("staging tasks");
      if (task.lane != graph::Op::shared_lane) lanes.insert(task.lane);
      add("data edges", static_cast<std::int64_t>(task.predecessors.size()));
    }
    if (lanes.size() > 1) add("programs with several lanes");
    if (std::ranges::all_of(spec_.schedule.tasks, [](auto& task) { return task.ops.size() == 1; }))
      add("programs with one op a task");
  }

  void count_plan() {
    add("programs");
    add("reuse edges", static_cast<std::int64_t>(spec_.plan.reuse_edges.size()));
    if (!spec_.plan.reuse_edges.empty()) add("programs with reuse edges");
    add("layout " + std::string(to_string(spec_.plan.layout)));
    if (spec_.name.ends_with(".rest")) add("remainder programs");
  }

  const runtime::ProgramSpec& spec_;
  const Graph& graph_;
  Features& into_;
  std::vector<std::set<OpId>> readers_;  // by value
};

}  // namespace

void count_features(const RandomProgram& program, Features& into) {
  for (const runtime::ProgramSpec& spec : program.programs) Counter(spec, into).run();
  if (program.programs.size() > 1) ++into["programs over the same blocks"];
  if (!trusts_its_data(program)) ++into["programs that may be broken"];
}

}  // namespace arenite::oracle
