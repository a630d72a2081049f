#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

/// Where in a buffer a version of some of its bytes belongs.
struct Place {
  StorageId buffer;
  std::int64_t offset = 0;
};

/// A new version, and the op that made it.
struct Update {
  std::int64_t begin = 0;  ///< bytes of the buffer
  std::int64_t end = 0;
  OpId op;
};

class Keeper {
 public:
  Keeper(Graph& graph, const OperatorTable& table) : graph_(graph), builder_(graph, table) {}

  int run() {
    const std::vector<OpId> ops = graph_[Graph::body].ops;
    for (const OpId id : ops) {
      if (graph_[id].definition->new_version) note(id);
    }
    refuse_in_blocks();
    if (kept_.empty()) return 0;
    builder_.context.phase = phase_of_all(ops);
    keep_outputs();
    for (const ValueId value : kept_) builder_.add("assign", {target_of(value), value});
    verify(graph_);
    return static_cast<int>(kept_.size());
  }

 private:
  /// Whether the value is some version of some of a buffer's bytes, and then where they lie.
  bool find(ValueId value, Place& place) const {
    const StorageId storage = graph_.root(value);
    if (const auto found = versions_.find(storage); found != versions_.end()) {
      place = {found->second.buffer, found->second.offset + graph_[value].offset};
      return true;
    }
    place = {storage, graph_[value].offset};
    return graph_.storage(storage).cls == StorageClass::buffer;
  }

  void note(OpId id) {
    const Op& op = graph_[id];
    const ValueId old = op.operands[0], made = op.results[0];
    Place place;
    if (!find(old, place)) return;
    const Value& value = graph_[made];
    const Update update{place.offset,
                        place.offset + byte_size(value.type, value.shape, value.layout), id};
    std::vector<Update>& others = updates_[graph_.root(old)];
    for (const Update& other : others) {
      if (update.begin >= other.end || other.begin >= update.end) continue;
      fail({.found = "a second new version of '" + graph_[old].name + "', which " +
                     describe(graph_, other.op) + " has replaced",
            .expected = "one update of each version of a buffer",
            .where = op.where.empty() ? describe(graph_, id) : op.where,
            .hint = "replace rows of that op's result instead"});
    }
    others.push_back(update);
    versions_[graph_.root(made)] = place;
    // What is a version of all of it is assigned alone.
    std::erase(kept_, old);
    kept_.push_back(made);
  }

  void refuse_in_blocks() const {
    for (std::size_t r = 1; r < graph_.region_count(); ++r) {
      for (const OpId id : graph_[RegionId(r)].ops) {
        Place place;
        if (!graph_[id].definition->new_version || !find(graph_[id].operands[0], place)) continue;
        fail({.found = "a new version of buffer '" + graph_.storage(place.buffer).name +
                       "', made in a block",
              .expected = "one made outside of blocks",
              .where = graph_[id].where.empty() ? describe(graph_, id) : graph_[id].where,
              .hint = "yield the rows, and replace those of the buffer behind the block"});
      }
    }
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
    if (graph_.root_storage(value).cls == StorageClass::buffer) return value;
    // A copy: adding ops moves what a reference would refer to.
    const Op op = graph_[graph_[value].producer];
    if (op.definition->new_version) return target_of(op.operands[0]);
    const auto result = std::find(op.results.begin(), op.results.end(), value) - op.results.begin();
    const auto viewed = result_views(graph_, op)[static_cast<std::size_t>(result)]->operand;
    std::vector<ValueId> operands = op.operands;
    operands[viewed] = target_of(operands[viewed]);
    return builder_.add(op.name(), std::move(operands),
                        op.attributes)[static_cast<std::size_t>(result)];
  }

  /// What callers read of a buffer is the version that they named.
  void keep_outputs() {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId output = graph_.outputs[i];
      if (updates_.contains(graph_.root(output)) &&
          graph_.root_storage(output).cls == StorageClass::buffer) {
        graph_.outputs[i] = builder_.add1("identity", {output});
      }
    }
  }

  Graph& graph_;
  Builder builder_;
  std::map<StorageId, Place> versions_;               ///< by the storage of a new version
  std::map<StorageId, std::vector<Update>> updates_;  ///< by that of the old version
  std::vector<ValueId> kept_;
};

}  // namespace

int keep_buffers(Graph& graph, const OperatorTable& table) { return Keeper(graph, table).run(); }

}  // namespace arenite::graph
