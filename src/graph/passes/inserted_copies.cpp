#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <map>
#include <vector>

#include "src/graph/nesting.hpp"
#include "src/graph/passes/old_readers.hpp"
#include "src/graph/versions.hpp"
#include "src/graph/views.hpp"

namespace arenite::graph {
namespace {

class CopyFinder {
 public:
  explicit CopyFinder(const Graph& graph) : graph_(graph), nesting_(graph) {}

  std::vector<InsertedCopy> run() {
    std::vector<Version> copies;
    for (const OpId id : nested_ops(graph_)) {
      const Op& op = graph_[id];
      for_each_renewed(op, [&](std::size_t result, std::size_t operand) {
        if (graph_.root(op.operands[operand]) != graph_.root(op.results[result]))
          copies.push_back({id, result, operand});
      });
    }
    std::vector<InsertedCopy> all;
    if (copies.empty()) return all;
    mark_assignments();
    for (const Version& copy : copies) all.push_back({copy.op, reason(copy)});
    return all;
  }

 private:
  /// What keep_state adds to keep a copy is none of its reasons.
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
      const std::size_t result = result_index(op, value);
      if (const auto renewed = renewed_operand(op, result)) {
        value = op.operands[*renewed];
        continue;
      }
      const auto views = result_views(graph_, op);
      if (result >= views.size() || !views[result]) return false;
      value = op.operands[views[result]->operand];
    }
    return true;
  }

  std::string reason(const Version& copy) {
    const OpId id = copy.op;
    const ValueId old = graph_[id].operands[copy.operand], made = graph_[id].results[copy.result];
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
    std::string obstacle = readers->second.obstacle(id, old, assigns_);
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
