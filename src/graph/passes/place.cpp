#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/graph/nesting.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/verify_pass.hpp"
#include "src/graph/values.hpp"
#include "src/graph/views.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace arenite::graph {
namespace {

/// Decides where every op runs and every storage lives.
class Homes {
 public:
  Homes(const Graph& graph, const Spaces& spaces, const KernelSelector& selector)
      : graph_(graph),
        spaces_(spaces),
        home_(graph.storage_count()),
        on_host_(graph.op_count(), nullptr),
        written_(graph.op_count()) {
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      const Value& value = graph[ValueId(i)];
      if (value.is_declared() && is_persistent(graph.root_storage(ValueId(i)).cls))
        home_[graph.root(ValueId(i)).index] = spaces.shared;
    }
    for (OpId id : graph[Graph::body].ops) {
      for_each_root(graph, id, [&](StorageId root, bool written) {
        if (written) written_[id.index].push_back(root);
      });
      // Blocks look at conditions between their ops, and what fills inputs reads the host's memory.
      if (!graph[id].regions.empty()) {
        on_host_[id.index] = "it holds blocks";
      } else if (is_staging(graph, id)) {
        on_host_[id.index] = "it fills inputs";
      } else if (!selector.has_kernel({graph, graph[id]}, gpu_of(graph[id]))) {
        on_host_[id.index] = "there is no kernel of it for the device";
      }
    }
    while (settle()) {
    }
  }

  /// The GPU that an op would run on: its lane's, else one of those there are.
  Space gpu_of(const Op& op) const {
    const auto is_gpu = [](const Space& space) { return space.device != DeviceKind::cpu; };
    if (is_gpu(spaces_.of_lane(op.lane))) return spaces_.of_lane(op.lane);
    const auto gpu = std::ranges::find_if(spaces_.lanes, is_gpu);
    if (is_gpu(spaces_.shared) || gpu == spaces_.lanes.end()) return spaces_.shared;
    return *gpu;
  }

  /// What keeps an op of the body from a device; none: nothing does.
  const char* kept_on_host(OpId id) const { return on_host_[id.index]; }
  const Space& of(StorageId root) const { return home_[root.index]; }
  /// Operands' storages that an op of the body writes, or that ops in its blocks write.
  const std::vector<StorageId>& written(OpId id) const { return written_[id.index]; }
  Space of(OpId id) const {
    if (kept_on_host(id) != nullptr) return {};
    // What is written in place is written where it lives.
    if (!written_[id.index].empty()) return of(written_[id.index].front());
    return spaces_.of_lane(graph_[id].lane);
  }

 private:
  /// One round; true when something had to move to the host, which may move more.
  bool settle() {
    bool moved = false;
    const auto to_host = [&](OpId id) {
      const char*& why = on_host_[id.index];
      moved = moved || why == nullptr;
      if (why == nullptr) why = "what it writes lives in the host's memory";
    };
    for (OpId id : graph_[Graph::body].ops) {
      if (is_view_op(graph_, id)) continue;
      const auto& written = written_[id.index];
      const bool apart = std::any_of(written.begin(), written.end(), [&](StorageId root) {
        return of(root) != of(written.front()) || of(root).device == DeviceKind::cpu;
      });
      if (apart) to_host(id);
      for (ValueId result : graph_[id].results) {
        // Of results in an operand's bytes the operand decides.
        if (graph_[result].producer == id && owns(id, result))
          home_[graph_.root(result).index] = of(id);
      }
      if (kept_on_host(id) == nullptr) continue;
      for (StorageId root : written) {
        if (of(root).device == DeviceKind::cpu) continue;
        home_[root.index] = {};
        moved = true;
        for (OpId maker : graph_[Graph::body].ops) {
          for (ValueId result : graph_[maker].results) {
            if (graph_.root(result) == root && owns(maker, result)) to_host(maker);
          }
        }
      }
    }
    return moved;
  }

  bool owns(OpId id, ValueId result) const {
    const auto& operands = graph_[id].operands;
    return std::none_of(operands.begin(), operands.end(), [&](ValueId operand) {
      return operand && graph_.root(operand) == graph_.root(result);
    });
  }

  const Graph& graph_;
  const Spaces& spaces_;
  std::vector<Space> home_;                      // by root storage
  std::vector<const char*> on_host_;             // by op of the body: why; none: it is not
  std::vector<std::vector<StorageId>> written_;  // by op of the body
};

class Placer {
 public:
  Placer(Graph& graph, const OperatorTable& table, const Homes& homes, Remarks* remarks)
      : graph_(graph),
        builder_(graph, table),
        homes_(homes),
        remarks_(remarks),
        version_(graph.storage_count(), 0) {}

  int run() {
    std::vector<OpId> ops;
    ops.swap(graph_[Graph::body].ops);  // what the builder appends goes behind what is there
    for (std::size_t i = 0; i < version_.size(); ++i)
      graph_.storage(StorageId(i)).space = homes_.of(graph_.root(StorageId(i)));
    for (OpId id : ops) {
      if (!is_view_op(graph_, id)) {
        const char* why = homes_.kept_on_host(id);
        note(
            why != nullptr ? remarks_ : nullptr, graph_, {why},
            [&] { return describe(graph_, id); }, [] { return ""; });
        bring_operands(id);
      }
      graph_[Graph::body].ops.push_back(id);
      note_writes(id);
    }
    bring_outputs();
    verify_pass(graph_);
    check_spaces(graph_);
    return crossings_;
  }

 private:
  void bring_operands(OpId id) {
    builder_.context = {
        .phase = graph_[id].phase, .lane = graph_[id].lane, .where = graph_[id].where};
    const Space space = homes_.of(id);
    set_operands(id, space);
    const std::vector<OpId> inner = nested_in(id);
    for (OpId op : inner) {
      set_operands(op, space);
      move_views(graph_, op);  // of its owner's copy
    }
    set_yielded(id, space);
    for (OpId op : inner) set_yielded(op, space);
  }

  void set_operands(OpId id, const Space& space) {
    auto here = brought(graph_[id].operands, space);
    graph_[id].operands = std::move(here);
  }
  void set_yielded(OpId id, const Space& space) {
    for (std::size_t r = 0; r < graph_[id].regions.size(); ++r) {
      const RegionId region = graph_[id].regions[r];
      auto here = brought(graph_[region].results, space);
      graph_[region].results = std::move(here);
    }
  }

  /// A list of its own: the copies' making moves the graph's.
  std::vector<ValueId> brought(std::vector<ValueId> values, const Space& space) {
    for (ValueId& id : values) id = bring(id, space);
    return values;
  }

  /// The ops in an op's blocks, in program order.
  std::vector<OpId> nested_in(OpId id) const {
    std::vector<OpId> found;
    for (const RegionId region : graph_[id].regions) add_nested_ops(graph_, region, found);
    return found;
  }

  /// The value as an op in this space reads it.
  ValueId bring(ValueId id, const Space& space) {
    if (!id) return id;
    const StorageId root = graph_.root(id);
    if (graph_.storage(root).space == space) return id;
    const auto key = std::pair(id, to_string(space));
    const long version = root.index < version_.size() ? version_[root.index] : 0;
    if (const auto known = copies_.find(key);
        known != copies_.end() && known->second.version == version && reads(known->second.value))
      return known->second.value;
    const StorageClass cls = graph_.storage(root).cls;
    const ValueId copy = cls == StorageClass::constant && space.device != DeviceKind::cpu
                             ? constant_in(id, space)
                             : cross(id, cls, space);
    copies_[key] = {copy, version};
    return copy;
  }

  /// Whether the op at hand may read a copy: one that was made for an op of a later phase is none
  /// of its own.
  bool reads(ValueId copy) const {
    const OpId maker = graph_[copy].producer;
    return !maker || may_read(builder_.context.phase, graph_[maker].phase);
  }

  ValueId cross(ValueId id, StorageClass cls, const Space& space) {
    note(
        remarks_, graph_, {}, [&] { return name_of(graph_, id); },
        [&] { return "copied to " + to_string(space); });
    const ValueId copy = builder_.add1(copy_operator, {id});
    Storage& storage = graph_.storage(graph_[copy].storage);
    storage.space = space;
    storage.name = graph_[id].name + suffix(space);
    graph_[copy].name = storage.name;
    // Refilled each step behind the step before, as what it comes from.
    if (cls == StorageClass::input || cls == StorageClass::constant)
      storage.cls = StorageClass::input;
    ++crossings_;
    return copy;
  }

  /// Bytes that never change are there once; what the op reads is the same view of them.
  ValueId constant_in(ValueId id, const Space& space) {
    const Value value = graph_[id];
    if (value.is_declared()) {
      return builder_.declare(constant_name(value.name, space), value.type, value.shape,
                              StorageClass::constant, space);
    }
    const OpId maker = value.producer;
    std::vector<ValueId> operands = graph_[maker].operands;
    for (ValueId& operand : operands) operand = bring(operand, space);
    const auto results = builder_.add(graph_[maker].definition, operands, graph_[maker].attributes);
    return results[result_index(graph_[maker], id)];
  }

  void note_writes(OpId id) {
    for (StorageId root : homes_.written(id)) ++version_[root.index];
  }

  /// Callers read the host's memory.
  void bring_outputs() {
    for (ValueId& output : graph_.outputs) {
      if (graph_.root_storage(output).space.device == DeviceKind::cpu) continue;
      const Op* maker = graph_[output].producer ? &graph_[graph_[output].producer] : nullptr;
      // What outlives the step is seen as the step leaves it.
      const bool persists = is_persistent(graph_.root_storage(output).cls);
      const Phase phase = maker != nullptr ? maker->phase : Phase::forward;
      builder_.context = {.phase = persists ? Phase::update : phase,
                          .lane = maker != nullptr ? maker->lane : Op::shared_lane,
                          .where = "output"};
      output = bring(output, {});
    }
  }

  struct Copy {
    ValueId value;
    long version = 0;
  };

  Graph& graph_;
  Builder builder_;
  const Homes& homes_;
  Remarks* remarks_;
  std::vector<long> version_;  // by storage that was there before: how often it was written so far
  std::map<std::pair<ValueId, std::string>, Copy> copies_;
  int crossings_ = 0;
};

bool on_host(const Space& space) { return space.device == DeviceKind::cpu; }

}  // namespace

std::string constant_name(const std::string& name, const Space& space) {
  return on_host(space) ? name : name + suffix(space);
}

Spaces deal_out(std::span<const Space> spaces, int lanes,
                const std::function<double(const Space&)>& microseconds) {
  constexpr int of_mixed = 8;
  if (lanes == 0) {
    lanes = std::any_of(spaces.begin(), spaces.end(), on_host) ? of_mixed
                                                               : static_cast<int>(spaces.size());
  }
  std::vector<double> cost(spaces.size(), 0);
  // Where there is nothing to choose nobody is asked.
  if (spaces.size() > 1) std::transform(spaces.begin(), spaces.end(), cost.begin(), microseconds);
  std::vector<int> count(spaces.size(), 0);
  for (int lane = 0; lane < lanes; ++lane) {
    const auto busy_with = [&](std::size_t i) { return (count[i] + 1) * cost[i]; };
    std::size_t best = 0;
    for (std::size_t i = 1; i < spaces.size(); ++i) {
      if (busy_with(i) < busy_with(best)) best = i;
    }
    ++count[best];
  }
  Spaces dealt{.shared = spaces[0], .lanes = {}};
  for (std::size_t i = 0; i < spaces.size(); ++i)
    dealt.lanes.insert(dealt.lanes.end(), static_cast<std::size_t>(count[i]), spaces[i]);
  return dealt;
}

int place(Graph& graph, const OperatorTable& table, const Spaces& spaces,
          const KernelSelector& selector, Remarks* remarks) {
  expect_no_kernels(graph, "place");
  if (on_host(spaces.shared) && std::all_of(spaces.lanes.begin(), spaces.lanes.end(), on_host))
    return 0;
  const Graph before = graph;
  const Homes homes(before, spaces, selector);
  return Placer(graph, table, homes, remarks).run();
}

}  // namespace arenite::graph
