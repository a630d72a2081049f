#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/notes.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/row_parts.hpp"
#include "src/graph/passes/sharing.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace arenite::graph {
namespace {

constexpr std::size_t samples_operand = 0, weight_operand = 1, bias_operand = 2;

/// The same op in each lane, on that lane's samples and the whole weight.
struct Group {
  std::vector<OpId> ops;  ///< by lane
  std::vector<RowPart> parts;
};

class Groups {
 public:
  Groups(const Graph& graph, const TargetProfile& target)
      : graph_(graph), target_(target), readers_(graph), lanes_(lane_count(graph)) {
    if (lanes_ < 2) return;
    for (std::size_t i = 0; i < graph.value_count(); ++i) {
      if (graph[ValueId(i)].is_declared()) add_groups_of(ValueId(i));
    }
  }

  const std::vector<Group>& all() const noexcept { return groups_; }
  int weights() const noexcept { return weights_; }

 private:
  /// Unless somebody reads the weight otherwise: then all of it has to go from worker to worker
  /// anyway.
  void add_groups_of(ValueId weight) {
    const Value& value = graph_[weight];
    if (!is_persistent(graph_.storage(value.storage).cls) || value.type != DType::float32 ||
        value.shape.rank() != 2 || value.layout != Layout{} ||
        readers_.of(weight).size() <= static_cast<std::size_t>(lanes_)) {
      return;
    }
    std::map<std::pair<std::string, ValueId>, Group> found;
    bool updated = false;
    for (const auto& [id, in_block] : readers_.of(weight)) {
      if (in_block) return;
      if (updates(id, weight)) {
        updated = true;
      } else if (splittable(id, weight)) {
        const Op& op = graph_[id];
        const ValueId bias =
            op.operands.size() > bias_operand ? op.operands[bias_operand] : ValueId{};
        Group& group = found[{std::string(op.name()), bias}];
        if (found.size() * static_cast<std::size_t>(lanes_) >= readers_.of(weight).size()) return;
        group.ops.resize(static_cast<std::size_t>(lanes_));
        OpId& mine = group.ops[static_cast<std::size_t>(op.lane)];
        if (mine) return;
        mine = id;
      } else {
        return;
      }
    }
    const auto fits = [&](const auto& entry) {
      return complete(entry.second) && pays(entry.second, weight);
    };
    if (!updated || found.empty() || !std::all_of(found.begin(), found.end(), fits)) return;
    ++weights_;
    for (auto& [key, group] : found) {
      group.parts = row_parts(value.shape[0], lanes_, lanes_);
      groups_.push_back(std::move(group));
    }
  }

  bool updates(OpId id, ValueId weight) const {
    const Op& op = graph_[id];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i] == weight && op.effect(i) != Effect::read) return true;
    }
    return false;
  }

  bool splittable(OpId id, ValueId weight) const {
    const Op& op = graph_[id];
    const auto& rule = op.definition->feature_split;
    if (!rule || op.lane < 0 || op.operands[weight_operand] != weight ||
        std::count(op.operands.begin(), op.operands.end(), weight) != 1 || !only_reads(op)) {
      return false;
    }
    const bool has_bias = op.operands.size() > bias_operand && op.operands[bias_operand];
    if (has_bias && (!rule->adds_up || graph_[op.operands[bias_operand]].shape.rank() != 1))
      return false;
    const Value& result = graph_[op.results[0]];
    const Storage& storage = graph_.storage(result.storage);
    return storage.cls == result_class(op.phase) && storage.space == Space{} &&
           result.layout == Layout{};
  }

  bool complete(const Group& group) const {
    const Op* first = group.ops.front() ? &graph_[group.ops.front()] : nullptr;
    return first && std::all_of(group.ops.begin(), group.ops.end(), [&](OpId id) {
             return id && graph_[id].phase == first->phase &&
                    graph_[id].attributes == first->attributes;
           });
  }

  /// Each lane would read what the others have updated of the weight, once for all its ops on it,
  /// and instead meets them before and after the op. Asked of each op of the weight: what forward
  /// spares, backward must not cost.
  bool pays(const Group& group, ValueId weight) const {
    const Shape& shape = graph_[weight].shape;
    std::int64_t samples = 0;
    for (OpId id : group.ops) samples += graph_[graph_[id].operands[samples_operand]].shape[0];
    const auto others = static_cast<double>(lanes_ - 1) / static_cast<double>(lanes_);
    const double bytes = others * sizeof(float) * static_cast<double>(shape.elements());
    return shape[0] >= lanes_ * row_granule(lanes_) &&
           bytes * 1e-3 / target_.handover_gigabytes >= 2 * target_.meeting_microseconds &&
           2.0 * static_cast<double>(samples) <= others * static_cast<double>(shape[1]);
  }

  const Graph& graph_;
  const TargetProfile& target_;
  const Readers readers_;
  const std::int64_t lanes_;
  std::vector<Group> groups_;
  int weights_ = 0;
};

/// Ops in an order in which those of a group stand side by side; empty when there is none.
class Order {
 public:
  Order(const Graph& graph, const std::vector<Group>& groups)
      : graph_(graph), stands_for_(graph.op_count()) {
    for (std::size_t i = 0; i < graph.op_count(); ++i) stands_for_[i] = OpId(i);
    for (const Group& group : groups) {
      for (OpId id : group.ops) stands_for_[id.index] = group.ops.front();
    }
  }

  std::vector<OpId> sorted() const {
    const auto& ops = graph_[Graph::body].ops;
    const Dependencies before = dependencies(graph_);
    const Nesting nesting(graph_);
    std::map<StorageId, std::vector<OpId>> readers;
    std::vector<std::vector<OpId>> behind(graph_.op_count());
    std::vector<std::size_t> waits(graph_.op_count(), 0), place(graph_.op_count(), 0);
    const auto follow = [&](OpId id, OpId first) {
      const OpId a = stands_for_[first.index], b = stands_for_[id.index];
      if (a == b) return;
      behind[a.index].push_back(b);
      ++waits[b.index];
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
      place[ops[i].index] = i;
      for (OpId p : before.of(ops[i])) follow(ops[i], p);
      for_each_named(graph_, ops[i], [&](ValueId value) {
        const OpId maker = graph_[value].producer;
        if (maker && nesting.region_of(maker) == Graph::body) follow(ops[i], maker);
      });
      // An update stays behind all that reads any part of what it changes.
      for_each_root(graph_, ops[i], [&](StorageId root, bool written) {
        if (written && graph_[ops[i]].phase == Phase::update) {
          for (OpId reader : readers[root]) follow(ops[i], reader);
        } else if (!written) {
          readers[root].push_back(ops[i]);
        }
      });
    }
    const auto later = [&](OpId a, OpId b) { return place[a.index] > place[b.index]; };
    std::priority_queue<OpId, std::vector<OpId>, decltype(later)> ready(later);
    const auto add = [&](OpId id) {
      if (waits[id.index] == 0 && stands_for_[id.index] == id) ready.push(id);
    };
    for (OpId id : ops) add(id);
    std::vector<OpId> order;
    while (!ready.empty()) {
      const OpId id = ready.top();
      ready.pop();
      order.push_back(id);
      for (OpId next : behind[id.index]) {
        if (--waits[next.index] == 0) ready.push(next);
      }
    }
    const bool all =
        std::all_of(ops.begin(), ops.end(), [&](OpId id) { return waits[id.index] == 0; });
    return all ? order : std::vector<OpId>{};
  }

 private:
  const Graph& graph_;
  std::vector<OpId> stands_for_;  // by op: the first of its group
};

/// Appends what a group becomes.
class Emitter {
 public:
  Emitter(const Graph& source, const Group& group, std::vector<ValueId>& map, Builder& builder)
      : source_(source), group_(group), map_(map), builder_(builder) {}

  void add() {
    const FeatureSplit& rule = *first().definition->feature_split;
    std::vector<ValueId> made;
    for (const RowPart& part : group_.parts) made.push_back(add_part(rule, part));
    std::int64_t begin = 0;
    for (OpId id : group_.ops) {
      const Op& op = source_[id];
      const std::int64_t end = begin + source_[op.operands[samples_operand]].shape[0];
      enter(op, op.lane);
      const ValueId result =
          rule.adds_up ? add_up(rule, op, made, begin, end)
                       : builder_.add1("join_columns", made, {{"rows", List{begin, end}}});
      map_[op.results[0].index] = result;
      builder_.graph()[result].name = source_[op.results[0]].name;
      begin = end;
    }
  }

 private:
  using List = std::vector<std::int64_t>;

  const Op& first() const { return source_[group_.ops.front()]; }

  void enter(const Op& op, int lane) {
    builder_.context = {.phase = op.phase, .lane = lane, .where = op.where};
  }

  ValueId add_part(const FeatureSplit& rule, const RowPart& part) {
    enter(first(), part.lane);
    std::vector<ValueId> samples;
    for (OpId id : group_.ops) samples.push_back(map_[source_[id].operands[samples_operand].index]);
    const List columns = rule.adds_up ? List{part.begin, part.end} : List{};
    const ValueId all = builder_.add1("stack_columns", samples, {{"columns", columns}}),
                  rows = builder_.add1("slice", {map_[first().operands[weight_operand].index]},
                                       {{"begin", part.begin}, {"end", part.end}});
    return builder_.add1(rule.part, {all, rows}, first().attributes);
  }

  ValueId add_up(const FeatureSplit& rule, const Op& op, const std::vector<ValueId>& parts,
                 std::int64_t begin, std::int64_t end) {
    std::vector<ValueId> terms;
    for (ValueId part : parts)
      terms.push_back(builder_.add1("slice", {part}, {{"begin", begin}, {"end", end}}));
    ValueId sum = builder_.add1("sum", terms);
    if (op.operands.size() > bias_operand && op.operands[bias_operand])
      sum = builder_.add1("bias", {sum, map_[op.operands[bias_operand].index]});
    return rule.relu ? builder_.add1("relu", {sum}) : sum;
  }

  const Graph& source_;
  const Group& group_;
  std::vector<ValueId>& map_;
  Builder& builder_;
};

}  // namespace

int split_features(Graph& graph, const OperatorTable& table, const TargetProfile& target) {
  expect_before_select(graph, "split_features");
  check(target);
  const Groups groups(graph, target);
  if (groups.all().empty()) return 0;
  const std::vector<OpId> order = Order(graph, groups.all()).sorted();
  if (order.empty()) return 0;
  std::map<OpId, const Group*> first;
  for (const Group& group : groups.all()) first.emplace(group.ops.front(), &group);
  graph = rebuild(graph, table, order, [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
    const auto group = first.find(id);
    if (group == first.end()) return false;
    Emitter(graph, *group->second, map, builder).add();
    return true;
  });
  return groups.weights();
}

}  // namespace arenite::graph
