#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/graph/passes/old_readers.hpp"
#include "src/graph/passes/verify_pass.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

class Keeper {
 public:
  Keeper(Graph& graph, const OperatorTable& table) : graph_(graph), builder_(graph, table) {}

  int run(Remarks* remarks) {
    const std::vector<Version> versions = Versions(graph_).all();
    if (versions.empty()) return 0;
    look_at_sharing();
    OldReaders readers(graph_);
    for (const Version& version : versions) {
      const Op& op = graph_[version.op];
      const std::string why = may_write(version)
                                  ? readers.obstacle(version.op, op.operands[version.operand])
                                  : "it was placed by hand";
      if (remarks != nullptr) {
        const std::string there =
            "in the bytes of '" + graph_.root_storage(op.operands[version.operand]).name + "'";
        if (why.empty()) remarks->done.push_back({describe(graph_, version.op), there});
        if (!why.empty())
          remarks->left.push_back({describe(graph_, version.op) + ", " + there, why});
      }
      if (why.empty()) {
        write_in_place(version, readers);
      } else {
        keep_copy(version);
      }
    }
    if (written_ > 0) take_views_early();
    if (!kept_.empty()) assign_copies();
    verify_pass(graph_);
    return written_ + static_cast<int>(kept_.size());
  }

 private:
  void look_at_sharing() {
    shared_.resize(graph_.storage_count(), false);
    for (std::size_t i = 0; i < graph_.storage_count(); ++i) {
      const StorageId id(i), root = graph_.root(id);
      if (root != id) shared_[i] = shared_[root.index] = true;
    }
    for (std::size_t i = 0; i < graph_.value_count(); ++i)
      values_[graph_[ValueId(i)].storage].emplace_back(i);
  }

  /// The old version lies in what persists, the new one where nobody asked for by hand, and
  /// `select` has not seen the op.
  bool may_write(const Version& version) const {
    const Op& op = graph_[version.op];
    const Value &old = graph_[op.operands[version.operand]],
                &made = graph_[op.results[version.result]];
    const Storage &persistent = graph_.root_storage(op.operands[version.operand]),
                  &own = graph_.storage(made.storage);
    return op.kernel.empty() && !op.workspace && is_persistent(persistent.cls) &&
           own.cls == result_class(op.phase) && !shared_[old.storage.index] &&
           !shared_[made.storage.index] && old.layout == Layout{} && made.layout == Layout{} &&
           persistent.space == own.space && own.bytes == byte_size(made.type, made.shape);
  }

  /// The result, and what lies in it, lie where the old version does.
  void write_in_place(const Version& version, OldReaders& readers) {
    const Op& op = graph_[version.op];
    const ValueId old = op.operands[version.operand];
    const StorageId from = graph_[op.results[version.result]].storage, into = graph_.root(old);
    const std::int64_t offset = graph_[old].offset;
    for (const ValueId value : values_[from]) graph_[value].offset += offset;
    graph_.storage(from).bytes += offset;
    graph_.merge(from, into);
    readers.move(from, into);
    ++written_;
  }

  /// Views of what persists show rows that stay as they are: they are taken as soon as what they
  /// are of is there, before others of its rows are written.
  void take_views_early() {
    std::vector<OpId> others = graph_[Graph::body].ops;
    std::erase_if(others, [&](OpId id) { return is_view_op(graph_, id); });
    graph_[Graph::body].ops = with_others_early(graph_, Graph::body, others);
  }

  /// The new version has bytes of its own until all else is done.
  void keep_copy(const Version& version) {
    const Op& op = graph_[version.op];
    // What is a version of all of it is assigned alone.
    std::erase(kept_, whole(op.operands[version.operand]));
    kept_.push_back(op.results[version.result]);
  }

  /// What a view shows all of.
  ValueId whole(ValueId view) const {
    for (;;) {
      const OpId producer = graph_[view].producer;
      if (!producer || !is_view_op(graph_, producer)) return view;
      const ValueId of = graph_[producer].operands[owner(graph_[producer], view).first];
      if (byte_size(graph_[of].type, graph_[of].shape) !=
          byte_size(graph_[view].type, graph_[view].shape))
        return view;
      view = of;
    }
  }

  void assign_copies() {
    builder_.context.phase = phase_of_all(graph_[Graph::body].ops);
    copy_outputs();
    // By what they are versions of: what persists, or others that are assigned before.
    const std::unordered_set<ValueId> kept(kept_.begin(), kept_.end());
    std::unordered_map<ValueId, std::vector<std::pair<ValueId, Origin>>> made_of;
    for (const ValueId value : kept_) {
      Origin origin = origin_of(value, kept);
      const ValueId of = kept.contains(origin.value) ? origin.value : ValueId{};
      made_of[of].emplace_back(value, std::move(origin));
    }
    // Views are taken before anything is assigned to others of the same.
    std::unordered_map<ValueId, ValueId> targets;
    for (const auto& [value, origin] : made_of[{}]) targets[value] = again(origin, origin.value);
    for (const ValueId value : kept_) {
      const ValueId target = targets.at(value), made = builder_.add1("assign", {target, value});
      const StorageId own = graph_[made].storage;
      graph_[made].offset = graph_[target].offset;
      graph_.storage(own).bytes += graph_[target].offset;
      graph_.merge(own, graph_.root(target));
      for (const auto& [next, origin] : made_of[value]) targets[next] = again(origin, made);
    }
  }

  /// What callers read of what is overwritten is the version that they named.
  void copy_outputs() {
    std::vector<Origin> origins;
    for (const ValueId value : kept_) origins.push_back(origin_of(value, {}));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId output = graph_.outputs[i];
      const std::pair<std::int64_t, std::int64_t> bytes = byte_range(graph_, output);
      const bool overwritten = std::ranges::any_of(origins, [&](const Origin& o) {
        return graph_.root(o.value) == graph_.root(output) &&
               std::max(o.begin, bytes.first) < std::min(o.end, bytes.second);
      });
      if (overwritten) graph_.outputs[i] = builder_.add1(copy_operator, {output});
    }
  }

  /// Behind a backward pass, which may still read the old version, it is an update.
  Phase phase_of_all(const std::vector<OpId>& ops) const {
    const bool training = std::any_of(ops.begin(), ops.end(), [&](OpId id) {
      return graph_[id].phase == Phase::backward || graph_[id].phase == Phase::update;
    });
    return training ? Phase::update : graph_[ops.back()].phase;
  }

  /// What a value is a version of: one that lies in what persists, or an earlier stop.
  struct Origin {
    ValueId value;
    std::vector<ValueId> views;  ///< of its versions, the last one first
    std::int64_t begin = 0, end = 0;
  };

  Origin origin_of(ValueId value, const std::unordered_set<ValueId>& stops) const {
    const Value& made = graph_[value];
    Origin origin{value, {}, 0, byte_size(made.type, made.shape)};
    while (!is_persistent(graph_.root_storage(origin.value).cls) &&
           (origin.value == value || !stops.contains(origin.value))) {
      const ValueId now = origin.value;
      const Op& op = graph_[graph_[now].producer];
      if (const auto renewed = renewed_operand(op, result_index(op, now))) {
        origin.value = op.operands[*renewed];
        continue;
      }
      origin.views.push_back(now);
      origin.value = op.operands[owner(op, now).first];
      origin.begin += graph_[now].offset - graph_[origin.value].offset;
    }
    origin.begin += graph_[origin.value].offset;
    origin.end += origin.begin;
    return origin;
  }

  /// The same views of what lies there now.
  ValueId again(const Origin& origin, ValueId value) {
    for (auto view = origin.views.rbegin(); view != origin.views.rend(); ++view) {
      // A copy: adding ops moves what a reference would refer to.
      const Op op = graph_[graph_[*view].producer];
      const auto [operand, result] = owner(op, *view);
      std::vector<ValueId> operands = op.operands;
      operands[operand] = value;
      value = builder_.add(op.definition, std::move(operands), op.attributes)[result];
    }
    return value;
  }

  /// The operand that a view lies in, and which result it is.
  std::pair<std::size_t, std::size_t> owner(const Op& op, ValueId view) const {
    const std::size_t result = result_index(op, view);
    return {result_views(graph_, op)[result]->operand, result};
  }

  Graph& graph_;
  Builder builder_;
  std::vector<bool> shared_;  ///< by storage: merged, or merged into
  std::unordered_map<StorageId, std::vector<ValueId>> values_;
  std::vector<ValueId> kept_;
  int written_ = 0;
};

}  // namespace

int keep_state(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  return Keeper(graph, table).run(remarks);
}

}  // namespace arenite::graph
