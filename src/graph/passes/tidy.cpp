#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "src/base/words.hpp"
#include "src/graph/equal.hpp"
#include "src/graph/passes/obstacle.hpp"
#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/tidy_needs.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"
#include "src/graph/words.hpp"

namespace arenite::graph {
namespace {

void mix(std::size_t& hash, std::size_t more) {
  hash ^= more + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
}

std::size_t hash_of(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& held) {
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          std::size_t hash = held.size();
          for (const std::int64_t number : held) mix(hash, static_cast<std::size_t>(number));
          return hash;
        } else {
          return std::hash<T>()(held);
        }
      },
      value);
}

/// Walks the graph in program order, and makes each op simpler where it stands: what it reads is
/// tidy already.
class Tidier {
 public:
  Tidier(Graph& graph, const OperatorTable& table, bool telling)
      : graph_(graph),
        table_(table),
        telling_(telling),
        stands_for_(graph.value_count()),
        numbers_(graph.value_count()),
        observed_(graph.value_count()),
        kept_(graph.op_count()),
        replaced_(graph.op_count()),
        renewed_(graph.storage_count()) {
    for (std::size_t i = 0; i < stands_for_.size(); ++i) stands_for_[i] = numbers_[i] = ValueId(i);
    for (ValueId output : graph.outputs) observed_[output.index] = true;
    if (graph.training) observed_[graph.training->loss.index] = true;
    const Versions versions(graph);
    for (const Version& version : versions.all()) kept_[version.op.index] = true;
    const Needs needs(graph, kept_, replaced_);
    for (std::size_t i = 0; i < graph.op_count(); ++i) {
      const Op& op = graph[OpId(i)];
      if (!needs.op(OpId(i))) continue;
      for_each_renewed(op, [&](std::size_t, std::size_t operand) {
        renewed_[graph.root(op.operands[operand]).index] = true;
      });
    }
  }

  int run(Remarks* remarks) {
    seen_.reserve(graph_.op_count());
    walk(Graph::body);
    for (ValueId& output : graph_.outputs) output = now(output);
    if (graph_.training) graph_.training->loss = now(graph_.training->loss);
    const Needs needs(graph_, kept_, replaced_);
    const std::vector<OpId> ops = nested_ops(graph_);
    const auto needless = std::ranges::count_if(ops, [&](OpId id) { return !needs.op(id); });
    if (remarks != nullptr) tell(ops, needs, *remarks);
    const int count = made_others_ + static_cast<int>(needless) + needs.drop_results(graph_);
    if (count > 0) {
      graph_ = rebuild(graph_, table_,
                       [&](OpId id, std::vector<ValueId>&, Builder&) { return !needs.op(id); });
    }
    return count;
  }

 private:
  ValueId now(ValueId id) const { return id ? stands_for_[id.index] : id; }

  void walk(RegionId region) {
    const std::size_t outside = shadowed_.size();
    for (OpId id : graph_[region].ops) visit(id);
    for (ValueId& yielded : graph_[region].results) yielded = now(yielded);
    // Others do not see what is made here.
    for (; shadowed_.size() > outside; shadowed_.pop_back()) {
      const auto [hash, before] = shadowed_.back();
      seen_[hash] = before;
    }
  }

  void visit(OpId id) {
    Op& op = graph_[id];
    for (ValueId& operand : op.operands) operand = now(operand);
    if (!op.regions.empty()) {
      for (RegionId region : op.regions) walk(region);
    } else if (!op.results.empty()) {
      if (op.definition->views) move_views(graph_, id);
      if (kept_[id.index] ||
          !std::ranges::all_of(op.results, [&](ValueId result) { return as_usual(result); }))
        return;
      simplify(id);
    } else {
      return;
    }
    if (!replaced_[id.index]) join_equal(id);
  }

  /// Nobody placed it by hand.
  bool as_usual(ValueId result) const {
    const Op& op = graph_[graph_[result].producer];
    const bool is_view = op.definition->views && result_views(graph_, op)[result_index(op, result)];
    return is_view || (as_made(graph_, result) && fills_storage(graph_, result));
  }

  /// Nothing that makes a new version of it waits for its readers.
  bool is_steady(ValueId id) const {
    const StorageClass cls = graph_.root_storage(id).cls;
    return !renewed_[graph_.root(id).index] && cls != StorageClass::buffer &&
           cls != StorageClass::optimizer_state;
  }

  /// Whether a result may lie where the value does.
  Obstacle may_share(ValueId result, ValueId value) const {
    const Value &a = graph_[result], &b = graph_[value];
    if (!a.batch.empty() && a.batch != b.batch) return not_meant;
    if (graph_.root(result) == graph_.root(value)) return {};
    if (!is_steady(value)) return {.words = "%v may change in a step", .value = value};
    if (renewed_[graph_.root(result).index])
      return {.words = "there is a new version of %v", .value = result};
    if (b.layout != a.layout ||
        graph_.root_storage(value).space != graph_.root_storage(result).space)
      return {.words = "%v was placed by hand", .value = value};
    if (observed_[result.index] && !b.producer)
      return {.words = "callers read the result, and %v is not made in the step", .value = value};
    return {};
  }

  // ---- what operators know

  void simplify(OpId id) {
    const std::string before = telling_ ? describe(graph_, id) : "";
    std::string after;
    Obstacle why;
    while (!why && !replaced_[id.index] && graph_[id].definition->simplify &&
           graph_[id].results.size() == 1) {
      const auto simpler = graph_[id].definition->simplify(OpView(graph_, graph_[id]));
      if (!simpler) break;
      why = simpler->value ? replace(id, simpler->value) : make_other(id, *simpler);
      if (telling_ && !why) after = words_of(id, *simpler);
    }
    if (!after.empty()) done_[id].push_back({before, after});
    if (telling_ && why.worth_a_remark()) left_[id].push_back({before, in_words(graph_, why)});
  }

  std::string words_of(OpId id, const Simpler& simpler) const {
    if (simpler.value) return "is " + name_of(graph_, simpler.value);
    std::string operands;
    for (ValueId operand : graph_[id].operands)
      operands += (operands.empty() ? " of " : ", ") + (operand ? name_of(graph_, operand) : "_");
    return simpler.name + operands;
  }

  Obstacle replace(OpId id, ValueId value) {
    const ValueId result = graph_[id].results.front();
    expect_alike(id, {graph_[value].type, graph_[value].shape});
    if (const Obstacle why = may_share(result, value)) return why;
    stand_in(result, value);
    replaced_[id.index] = true;
    return {};
  }

  /// What callers read keeps the name that somebody gave it.
  void stand_in(ValueId result, ValueId value) {
    stands_for_[result.index] = value;
    if (!observed_[result.index] || observed_[value.index]) return;
    observed_[value.index] = true;
    if (!graph_[value].producer || !as_usual(value)) return;
    const std::string& name = graph_[result].name;
    if (name == graph_[graph_[result].producer].name()) return;
    if (as_made(graph_, value)) graph_.storage(graph_[value].storage).name = name;
    graph_[value].name = name;
  }

  Obstacle make_other(OpId id, const Simpler& simpler) {
    Op other = graph_[id];
    const ValueId result = other.results.front();
    other.definition = table_.at(simpler.name);
    other.attributes = simpler.attributes;
    other.operands = simpler.operands;
    for (ValueId operand : other.operands) {
      const bool is_read = std::ranges::any_of(graph_[id].operands, [&](ValueId read) {
        return read && operand && graph_.root(read) == graph_.root(operand);
      });
      if (operand && !is_read && !is_steady(operand))
        return {.words = "%v may change in a step", .value = operand};
    }
    expect_alike(id, other.definition->infer(OpView(graph_, other)).at(0));
    const auto views = result_views(graph_, other);
    if (views[0]) {
      if (const Obstacle why = may_share(result, other.operands.at(views[0]->operand))) return why;
    } else if (result_views(graph_, graph_[id])[0]) {
      Value& value = graph_[result];
      value.offset = 0;
      value.storage = graph_.add_storage({.name = value.name,
                                          .cls = result_class(other.phase),
                                          .space = {},
                                          .bytes = byte_size(value.type, value.shape),
                                          .merged_into = {}});
      renewed_.push_back(false);
    }
    graph_[id] = std::move(other);
    if (views[0]) move_views(graph_, id);
    ++made_others_;
    return {};
  }

  void expect_alike(OpId id, const ResultType& type) const {
    const Value& result = graph_[graph_[id].results.front()];
    if (type.type == result.type && type.shape == result.shape) return;
    fail({.found = "something simpler of " + type_text(type),
          .expected = type_text(result),
          .where = describe(graph_, id)});
  }

  // ---- equal ops

  std::size_t hash_of_op(const Op& op) const {
    std::size_t hash = std::hash<std::string_view>()(op.name());
    mix(hash, static_cast<std::size_t>(op.phase));
    mix(hash, static_cast<std::size_t>(op.lane));
    for (const auto& [name, value] : op.attributes.items()) mix(hash, hash_of(value));
    for (ValueId operand : op.operands)
      mix(hash, operand ? numbers_[operand.index].index : ~std::size_t{0});
    return hash;
  }

  bool are_equal(OpId first, OpId second) const {
    const Op &a = graph_[first], &b = graph_[second];
    const auto same_operand = [&](ValueId x, ValueId y) {
      return x == y || (x && y && numbers_[x.index] == numbers_[y.index]);
    };
    return a.definition == b.definition && a.phase == b.phase && a.lane == b.lane &&
           same_bits(a.attributes, b.attributes) &&
           std::ranges::equal(a.operands, b.operands, same_operand);
  }

  void join_equal(OpId id) {
    const std::size_t hash = hash_of_op(graph_[id]);
    const auto found = seen_.find(hash);
    const OpId first = found == seen_.end() ? OpId{} : found->second;
    if (!first || !are_equal(first, id)) {
      shadowed_.emplace_back(hash, first);
      seen_[hash] = id;
      return;
    }
    const Op &op = graph_[id], &same = graph_[first];
    Obstacle why = apart(op, same);
    if (!why) {
      for (std::size_t i = 0; i < op.results.size(); ++i) stand_in(op.results[i], same.results[i]);
      replaced_[id.index] = true;
    }
    why.op = first;
    if (telling_ && !why)
      done_[id].push_back({describe(graph_, id), "is " + describe(graph_, first)});
    if (telling_ && why.worth_a_remark())
      left_[id].push_back({describe(graph_, id), in_words(graph_, why)});
  }

  Obstacle apart(const Op& op, const Op& same) {
    if (!op.regions.empty()) return {.words = "its blocks are not compared with those of %o"};
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (graph_[op.results[i]].batch != graph_[same.results[i]].batch) return not_meant;
    }
    if (!op.operands.empty() || graph_[op.results[0]].shape.elements() <= 1) return {};
    for (std::size_t i = 0; i < op.results.size(); ++i)
      numbers_[op.results[i].index] = numbers_[same.results[i].index];
    return {.words = "%o makes the same, but to keep it takes bytes that to make it anew does not"};
  }

  // ---- remarks

  void tell(const std::vector<OpId>& ops, const Needs& needs, Remarks& remarks) {
    for (OpId id : ops) {
      if (!needs.op(id) && !replaced_[id.index])
        remarks.done.push_back({describe(graph_, id), "nobody needs it"});
      const auto results = std::ranges::count_if(
          graph_[id].results, [&](ValueId result) { return !needs.value(result); });
      if (needs.op(id) && !graph_[id].regions.empty() && results > 0)
        remarks.done.push_back({describe(graph_, id), counted(results, "result") + " less"});
      if (!kept_[id.index] && needs.reports_only(id)) {
        remarks.left.push_back(
            {describe(graph_, id), "nobody reads it, but it may find a fault in what it reads"});
      }
      for (auto [list, from] : {std::pair{&remarks.done, &done_}, {&remarks.left, &left_}}) {
        const auto own = from->find(id);
        if (own != from->end()) list->insert(list->end(), own->second.begin(), own->second.end());
      }
    }
  }

  using Told = std::map<OpId, std::vector<Remarks::Remark>>;

  Graph& graph_;
  const OperatorTable& table_;
  const bool telling_;
  std::vector<ValueId> stands_for_;    ///< by value
  std::vector<ValueId> numbers_;       ///< by value: equal ones of ops without operands have one
  std::vector<bool> observed_;         ///< by value: callers, or gradients, begin there
  std::vector<bool> kept_, replaced_;  ///< by op
  std::vector<bool> renewed_;          ///< by root storage: there is a new version
  std::unordered_map<std::size_t, OpId> seen_;  ///< the last visible op of each hash
  std::vector<std::pair<std::size_t, OpId>> shadowed_;
  int made_others_ = 0;
  Told done_, left_;
};

}  // namespace

int tidy(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  expect_before_select(graph, "tidy");
  return Tidier(graph, table, remarks != nullptr).run(remarks);
}

}  // namespace arenite::graph
