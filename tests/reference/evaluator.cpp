#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/regions.hpp>

#include "tests/reference/evaluator.hpp"

#include <algorithm>

namespace arenite::reference {

using graph::Graph;
using graph::OpId;
using graph::ValueId;

namespace {

/// What an op reads, itself or in its blocks.
std::vector<ValueId> named(const Graph& graph, OpId id) {
  std::vector<ValueId> all;
  const auto add = [&](const std::vector<ValueId>& list) {
    std::ranges::copy_if(list, std::back_inserter(all), [](ValueId v) { return bool(v); });
  };
  add(graph[id].operands);
  for (graph::RegionId region : graph[id].regions) {
    for (OpId inner : graph[region].ops) add(named(graph, inner));
    add(graph[region].results);
  }
  return all;
}

}  // namespace

void Call::check_used() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i] || !op_.operands[i]) continue;
    fail({.found = "operand " + std::to_string(i) + " (" + graph_[op_.operands[i]].name +
                   ") that plays no part",
          .expected = "a rule that reads every operand",
          .where = "reference rule of '" + std::string(op_.name()) + "'"});
  }
}

Evaluator::Evaluator(const Graph& graph, const Rules& rules)
    : graph_(graph), rules_(graph.op_count()), decisions_(graph.op_count()) {
  for (OpId id : nested_ops(graph)) {
    const graph::Op& op = graph[id];
    if (op.definition->control != graph::Control::none) continue;
    const auto rule = rules.find(op.definition->written.empty() ? op.name() : "formula");
    if (rule == rules.end() || !op.regions.empty()) {
      fail({.found = "operator '" + std::string(op.name()) + "' without a reference rule",
            .expected = "a rule for every operator",
            .where = describe(graph, id),
            .hint = "write its formula in double in tests/reference/"});
    }
    rules_[id.index] = &rule->second;
  }
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    values_.emplace_back(graph[ValueId(i)].shape);
}

Tensor& Evaluator::operator[](std::string_view declared) {
  const ValueId id = graph_.find(declared);
  if (!id) {
    fail({.found = "no declared value '" + std::string(declared) + "'",
          .expected = "the name of a declared value"});
  }
  return (*this)[id];
}

void Evaluator::run_branch(const graph::Op& op) {
  const graph::Region& region = graph_[op.regions[(*this)[op.operands[0]][0] != 0 ? 0 : 1]];
  for (OpId inner : region.ops) run(inner);
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    if (!region.results[i]) continue;
    (*this)[op.results[i]].data = (*this)[region.results[i]].data;
  }
}

void Evaluator::run_loop(const graph::Op& op) {
  const graph::Region& body = graph_[op.regions[0]];
  const std::size_t conditions = body.results.size() - op.results.size();
  auto trips = static_cast<double>(op.attributes.integer("max_trips"));
  if (op.operands[0]) trips = std::min(trips, (*this)[op.operands[0]][0]);
  bool more = !op.operands[1] || (*this)[op.operands[1]][0] != 0;
  std::vector<std::vector<double>> carried;
  for (std::size_t i = 2; i < op.operands.size(); ++i)
    carried.push_back((*this)[op.operands[i]].data);
  for (double trip = 0; more && trip < trips; ++trip) {
    (*this)[body.parameters[0]][0] = trip;
    for (std::size_t i = 0; i < carried.size(); ++i)
      (*this)[body.parameters[i + 1]].data = carried[i];
    for (OpId inner : body.ops) run(inner);
    if (conditions > 0) more = (*this)[body.results[0]][0] != 0;
    for (std::size_t i = 0; i < carried.size(); ++i)
      carried[i] = (*this)[body.results[i + conditions]].data;
  }
  for (std::size_t i = 0; i < carried.size(); ++i) (*this)[op.results[i]].data = carried[i];
}

/// Of an op, and of all that its blocks may have decided.
void Evaluator::forget_decisions(OpId id) {
  decisions_[id.index].clear();
  for (graph::RegionId region : graph_[id].regions) {
    for (OpId inner : graph_[region].ops) forget_decisions(inner);
  }
}

void Evaluator::run(OpId id) {
  const graph::Op& op = graph_[id];
  for (ValueId result : op.results) std::ranges::fill((*this)[result].data, 0.0);
  if (in_block_ == 0) forget_decisions(id);  // within, several trips decide
  if (op.definition->control != graph::Control::none) {
    ++in_block_;
    op.definition->control == graph::Control::loop ? run_loop(op) : run_branch(op);
    --in_block_;
    return;
  }
  Call call(graph_, op, values_, decisions_[id.index]);
  (*rules_[id.index])(call);
  call.check_used();
}

void Evaluator::keep() {
  struct Place {
    ValueId declared;
    std::int64_t offset = 0;  // elements
  };
  std::map<ValueId, Place> places;  // of what versions are versions of
  const auto place_of = [&](ValueId value) -> Place {
    std::int64_t offset = 0;
    while (graph_[value].producer && !places.contains(value)) {
      const graph::Op& op = graph_[graph_[value].producer];
      if (op.name() == "slice")
        offset +=
            op.attributes.integer("begin") * graph_[op.operands[0]].shape.with(0, 1).elements();
      else if (op.name() != "reshape" && op.name() != "flatten")
        return {};
      value = op.operands[0];
    }
    const auto known = places.find(value);
    Place place = known == places.end() ? Place{value} : known->second;
    place.offset += offset;
    return place;
  };
  std::vector<std::pair<ValueId, Place>> kept;
  for (OpId id : graph_[Graph::body].ops) {
    const graph::Op& op = graph_[id];
    std::vector<std::size_t> renewed;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i] && op.definition->operand_schema(i).renews != graph::Renews::nothing)
        renewed.push_back(i);
    }
    std::size_t result = op.results.size() - renewed.size();
    for (const std::size_t i : renewed) {
      const graph::Renews renews = op.definition->operand_schema(i).renews;
      const ValueId made = op.results[result++];
      const Place place = place_of(op.operands[i]);
      if (!place.declared) continue;
      const graph::StorageClass cls = graph_.storage(graph_[place.declared].storage).cls;
      const bool updates = op.phase == Phase::update || op.phase == Phase::init;
      if (!is_persistent(cls) ||
          (renews == graph::Renews::buffers && !updates && cls != graph::StorageClass::buffer))
        continue;
      places[made] = place;
      kept.emplace_back(made, place);
    }
  }
  for (const auto& [made, place] : kept) {
    std::ranges::copy((*this)[made].data, (*this)[place.declared].data.begin() + place.offset);
  }
}

void Evaluator::run() {
  for (OpId id : graph_[Graph::body].ops) run(id);
}

void Evaluator::rerun(ValueId changed) {
  const auto [entry, is_new] = dependents_.try_emplace(changed);
  if (is_new) {
    std::vector<bool> affected(graph_.value_count());
    const auto at = [&](ValueId v) { return affected[v.index]; };
    at(changed) = true;
    for (OpId id : graph_[Graph::body].ops) {
      const graph::Op& op = graph_[id];
      if (std::ranges::none_of(named(graph_, id), at)) continue;
      entry->second.push_back(id);
      for (ValueId result : op.results) at(result) = true;
    }
  }
  for (OpId id : entry->second) run(id);
}

Decisions Evaluator::decisions() const {
  Decisions all;
  for (const Decisions& one : decisions_) {
    all.branches.insert(all.branches.end(), one.branches.begin(), one.branches.end());
    all.margin = std::min(all.margin, one.margin);
  }
  return all;
}

}  // namespace arenite::reference
