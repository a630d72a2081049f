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
                                  : "only an op that may work in place, and that nobody placed by "
                                    "hand, may do so";
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
    if (written_ > 0) take_views_early();
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
    const Storage &buffer = graph_.root_storage(op.operands[0]),
                  &own = graph_.storage(made.storage);
    const auto& in_place = op.definition->in_place;
    return std::ranges::find(in_place, std::pair<std::size_t, std::size_t>()) != in_place.end() &&
           op.kernel.empty() && !op.workspace && buffer.cls == StorageClass::buffer &&
           own.cls == result_class(op.phase) && !shared_[old.storage.index] &&
           !shared_[made.storage.index] && old.layout == Layout{} && made.layout == Layout{} &&
           buffer.space == own.space && own.bytes == byte_size(made.type, made.shape);
  }

  /// The op's result, and what lies in it, lie where the old version does.
  void write_in_place(OpId id, OldReaders& readers) {
    const Op& op = graph_[id];
    const StorageId from = graph_[op.results[0]].storage, into = graph_.root(op.operands[0]);
    const std::int64_t offset = graph_[op.operands[0]].offset;
    for (const ValueId value : values_[from]) graph_[value].offset += offset;
    graph_.storage(from).bytes += offset;
    graph_.merge(from, into);
    readers.move(from, into);
    ++written_;
  }

  /// Views of a buffer show rows that stay as they are: they are taken as soon as what they are of
  /// is there, before others of its rows are written.
  void take_views_early() {
    std::vector<OpId> others = graph_[Graph::body].ops;
    std::erase_if(others, [&](OpId id) { return is_view_op(graph_, id); });
    graph_[Graph::body].ops = with_views_early(graph_, Graph::body, others);
  }

  /// The new version has bytes of its own until all else is done.
  void keep_copy(OpId id) {
    const Op& op = graph_[id];
    // What is a version of all of it is assigned alone.
    std::erase(kept_, op.operands[0]);
    kept_.push_back(op.results[0]);
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
  std::vector<ValueId> kept_;
  int written_ = 0;
};

}  // namespace

int keep_buffers(Graph& graph, const OperatorTable& table, Remarks* remarks) {
  return Keeper(graph, table).run(remarks);
}

}  // namespace arenite::graph
