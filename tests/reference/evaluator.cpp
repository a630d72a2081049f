#include <arenite/error.hpp>

#include "tests/reference/evaluator.hpp"

#include <algorithm>

namespace arenite::reference {

using graph::Graph;
using graph::OpId;
using graph::ValueId;

Tensor& Call::inout(std::size_t i) {
  const ValueId id = op_.operands.at(i);
  if (op_.effect(i) == graph::Effect::read || graph_[id].producer) {
    fail({.found = "a rule that writes '" + graph_[id].name + "'",
          .expected = "a declared value that its operator writes",
          .where = "reference rule of '" + std::string(op_.name()) + "'"});
  }
  used_[i] = true;
  return values_.at(id.index);
}

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
  for (OpId id : graph[Graph::body].ops) {
    const graph::Op& op = graph[id];
    const auto rule = rules.find(op.name());
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

void Evaluator::run(OpId id) {
  const graph::Op& op = graph_[id];
  for (ValueId result : op.results) std::ranges::fill((*this)[result].data, 0.0);
  decisions_[id.index].clear();
  Call call(graph_, op, values_, decisions_[id.index]);
  (*rules_[id.index])(call);
  call.check_used();
}

void Evaluator::run() {
  for (OpId id : graph_[Graph::body].ops) run(id);
}

void Evaluator::rerun(ValueId changed) {
  const auto [entry, is_new] = dependents_.try_emplace(changed);
  if (is_new) {
    std::vector<bool> affected(graph_.value_count());
    affected[changed.index] = true;
    for (OpId id : graph_[Graph::body].ops) {
      const graph::Op& op = graph_[id];
      if (std::ranges::none_of(op.operands, [&](ValueId v) { return v && affected[v.index]; }))
        continue;
      entry->second.push_back(id);
      for (ValueId result : op.results) affected[result.index] = true;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i] && op.effect(i) != graph::Effect::read)
          affected[op.operands[i].index] = true;
      }
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
