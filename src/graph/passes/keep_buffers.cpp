#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/graph/passes/old_readers.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

class Keeper {
 public:
  Keeper(Graph& graph, const OperatorTable& table) : graph_(graph), builder_(graph, table) {}

  int run(Remarks* remarks) {
    const std::vector<OpId> versions = Versions(graph_).ops();
    if (versions.empty()) return 0;
    look_at_sharing();
    OldReaders readers(graph_);
    for (const OpId id : versions) {
      const std::string why = may_write(id)
                                  ? readers.obstacle(id)
                                  : "only a replace_slice that nobody placed by hand may do so";
      if (remarks != nullptr) {
        const std::string there =
            "in the bytes of '" + graph_.root_storage(graph_[id].operands[0]).name + "'";
        if (why.empty()) remarks->done.push_back({describe(graph_, id), there});
        if (!why.empty()) remarks->left.push_back({describe(graph_, id) + ", " + there, why});
      }
      if (why.empty()) {
        write_in_place(id, readers);
      } else {
        keep_copy(id);
      }
    }
    place_views();
    if (!kept_.empty()) assign_copies();
    verify(graph_);
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

  /// The old version lies in a buffer, the new one where nobody asked for by hand, and `select` has
  /// not seen the op.
  bool may_write(OpId id) const {
    const Op& op = graph_[id];
    const Value &old = graph_[op.operands[0]], &made = graph_[op.results[0]];
    const Storage &buffer = graph_.storage(old.storage), &own = graph_.storage(made.storage);
    return op.name() == "replace_slice" && op.kernel.empty() && !op.workspace &&
           buffer.cls == StorageClass::buffer && own.cls == result_class(op.phase) &&
           !shared_[old.storage.index] && !shared_[made.storage.index] && old.layout == Layout{} &&
           made.layout == Layout{} && buffer.space == own.space &&
           own.bytes == byte_size(made.type, made.shape);
  }

  /// The op writes rows of the buffer; its result becomes a view of what it wrote.
  void write_in_place(OpId id, OldReaders& readers) {
    const ValueId made = graph_[id].results[0], old = graph_[id].operands[0];
    const auto known = target_.find(old);
    const ValueId target = known == target_.end() ? old : known->second;
    target_[made] = target;
    Op& op = graph_[id];
    const bool named = graph_[made].name != result_name(op, 0, 1);
    op.definition = builder_.table().at("update_slice");
    op.operands[0] = target;
    op.results.clear();

    const StorageId from = graph_[made].storage, into = graph_[target].storage;
    std::vector<ValueId>& moved = values_[from];
    std::vector<ValueId>& there = values_[into];
    for (const ValueId value : moved) {
      graph_[value].storage = into;
      graph_[value].offset += graph_[target].offset;
    }
    there.insert(there.end(), moved.begin(), moved.end());
    moved.clear();
    graph_.storage(from).bytes = 0;  // nobody's
    readers.move(from, into);

    const auto dims = graph_[made].shape.dims();
    Op view;
    view.definition = builder_.table().at("reshape");
    view.operands = {target};
    view.results = {made};
    view.phase = op.phase;
    view.lane = op.lane;
    view.where = op.where;
    view.attributes.set("shape", std::vector<std::int64_t>(dims.begin(), dims.end()));
    if (!named) graph_[made].name = result_name(view, 0, 1);
    views_.emplace(id, graph_.add_op(std::move(view)));
    ++written_;
  }

  /// The new version has bytes of its own until all else is done.
  void keep_copy(OpId id) {
    const Op& op = graph_[id];
    // What is a version of all of it is assigned alone.
    std::erase(kept_, op.operands[0]);
    kept_.push_back(op.results[0]);
  }

  /// Right behind the ops that write what they show.
  void place_views() {
    if (views_.empty()) return;
    std::vector<OpId>& ops = graph_[Graph::body].ops;
    std::vector<OpId> ordered;
    ordered.reserve(ops.size());
    for (std::size_t i = 0; i < ops.size() - views_.size(); ++i) {
      ordered.push_back(ops[i]);
      if (const auto view = views_.find(ops[i]); view != views_.end())
        ordered.push_back(view->second);
    }
    ops = std::move(ordered);
  }

  void assign_copies() {
    builder_.context.phase = phase_of_all(graph_[Graph::body].ops);
    std::vector<ValueId> targets;
    for (const ValueId value : kept_) targets.push_back(target_of(value));
    // What callers read of a buffer is the version that they named.
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId output = graph_.outputs[i];
      if (std::ranges::any_of(targets, [&](ValueId id) { return share_bytes(graph_, id, output); }))
        graph_.outputs[i] = builder_.add1("identity", {output});
    }
    for (std::size_t i = 0; i < kept_.size(); ++i) builder_.add("assign", {targets[i], kept_[i]});
  }

  /// Behind a backward pass, which may still read the old version, it is an update.
  Phase phase_of_all(const std::vector<OpId>& ops) const {
    const bool training = std::any_of(ops.begin(), ops.end(), [&](OpId id) {
      return graph_[id].phase == Phase::backward || graph_[id].phase == Phase::update;
    });
    return training ? Phase::update : graph_[ops.back()].phase;
  }

  /// The buffer, or the view of it, that the value is a version of.
  ValueId target_of(ValueId value) {
    std::vector<ValueId> viewed;
    while (graph_.root_storage(value).cls != StorageClass::buffer) {
      const Op& op = graph_[graph_[value].producer];
      if (!op.definition->new_version) viewed.push_back(value);
      value = op.operands[op.definition->new_version ? 0 : owner(op, value).first];
    }
    for (auto view = viewed.rbegin(); view != viewed.rend(); ++view) {
      // A copy: adding ops moves what a reference would refer to.
      const Op op = graph_[graph_[*view].producer];
      const auto [operand, result] = owner(op, *view);
      std::vector<ValueId> operands = op.operands;
      operands[operand] = value;
      value = builder_.add(op.name(), std::move(operands), op.attributes)[result];
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
  std::unordered_map<ValueId, ValueId> target_;  ///< of versions in place
  std::unordered_map<OpId, OpId> views_;         ///< by the op that writes what they show
  std::vector<ValueId> kept_;
  int written_ = 0;
};

}  // namespace

int keep_buffers(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  return Keeper(graph, table).run(remarks);
}

}  // namespace arenite::graph
