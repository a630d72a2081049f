#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include "src/graph/nesting.hpp"
#include "src/graph/passes/old_readers.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

class CopyFinder {
 public:
  explicit CopyFinder(const Graph& graph) : graph_(graph), nesting_(graph) {}

  std::vector<InsertedCopy> run() {
    std::vector<OpId> copies;
    for (const OpId id : nested_ops(graph_)) {
      const Op& op = graph_[id];
      if (op.definition->new_version && graph_.root(op.operands[0]) != graph_.root(op.results[0]))
        copies.push_back(id);
    }
    std::vector<InsertedCopy> all;
    if (copies.empty()) return all;
    mark_assignments();
    for (const OpId id : copies) all.push_back({id, reason(id)});
    return all;
  }

 private:
  /// What keep_buffers adds to keep a copy is none of its reasons.
  void mark_assignments() {
    assigns_.resize(graph_.op_count(), false);
    for (const OpId id : graph_[Graph::body].ops) {
      const Op& op = graph_[id];
      if (op.name() == "assign") assigns_[id.index] = is_version(op.operands[1], op.operands[0]);
    }
  }

  /// The value was made of what lies in the target's storage, by new versions and views of them.
  bool is_version(ValueId value, ValueId target) const {
    while (graph_.root(value) != graph_.root(target)) {
      const OpId producer = graph_[value].producer;
      if (!producer) return false;
      const Op& op = graph_[producer];
      if (op.definition->new_version) {
        value = op.operands[0];
        continue;
      }
      const auto views = result_views(graph_, op);
      const std::size_t result = result_index(op, value);
      if (result >= views.size() || !views[result]) return false;
      value = op.operands[views[result]->operand];
    }
    return true;
  }

  std::string reason(OpId id) {
    const ValueId old = graph_[id].operands[0], made = graph_[id].results[0];
    const Storage& storage = graph_.root_storage(old);
    switch (storage.cls) {
      case StorageClass::constant:
        return "'" + storage.name + "' is a constant";
      case StorageClass::input:
        return "'" + storage.name + "' is an input";
      case StorageClass::parameter:
      case StorageClass::optimizer_state:
        return "'" + storage.name + "' is changed by updates alone";
      default:
        break;
    }
    const RegionId region = nesting_.region_of(made);
    const auto readers = readers_.try_emplace(region, graph_, region).first;
    std::string obstacle = readers->second.obstacle(id, assigns_);
    if (!obstacle.empty()) return obstacle;
    if (region != Graph::body && nesting_.region_of(old) != region)
      return "the old version comes from outside of its block";
    if (!fills_storage(graph_, old)) return "the old version is a part of '" + storage.name + "'";
    return "no pass lets it write there";
  }

  const Graph& graph_;
  const Nesting nesting_;
  std::vector<bool> assigns_;  // by op
  std::map<RegionId, OldReaders> readers_;
};

}  // namespace

std::vector<InsertedCopy> inserted_copies(const Graph& graph) { return CopyFinder(graph).run(); }

}  // namespace arenite::graph
