#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>

#include "tests/reference/evaluator.hpp"

#include <algorithm>

namespace arenite::reference {

using graph::Graph;
using graph::OpId;
using graph::ValueId;

namespace {

/// What a slice is a part of; ValueId{} for any other value.
ValueId sliced(const Graph& graph, ValueId id) {
  const OpId producer = graph[id].producer;
  return producer && graph[producer].name() == "slice" ? graph[producer].operands[0] : ValueId{};
}

/// What a view lies in; ValueId{} for a value with bytes of its own.
ValueId owner(const Graph& graph, ValueId id) {
  const OpId producer = graph[id].producer;
  if (!producer || !is_view_op(graph, producer)) return {};
  const graph::Op& op = graph[producer];
  return op.operands.at(op.definition->views({graph, op}).front()->operand);
}

}  // namespace

Tensor& Call::inout(std::size_t i) {
  const ValueId id = op_.operands.at(i);
  ValueId whole = id;
  while (sliced(graph_, whole)) whole = sliced(graph_, whole);
  if (op_.effect(i) == graph::Effect::read || graph_[whole].producer) {
    fail({.found = "a rule that writes '" + graph_[id].name + "'",
          .expected = "a declared value, or a slice of one, that its operator writes",
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
  for (ValueId operand : op.operands) {
    if (operand) refresh(operand);
  }
  for (ValueId result : op.results) std::ranges::fill((*this)[result].data, 0.0);
  decisions_[id.index].clear();
  Call call(graph_, op, values_, decisions_[id.index]);
  (*rules_[id.index])(call);
  call.check_used();
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (op.operands[i] && op.effect(i) != graph::Effect::read) write_back(op.operands[i]);
  }
}

void Evaluator::refresh(ValueId view) {
  if (!owner(graph_, view)) return;
  run(graph_[view].producer);  // which refreshes its operand first
}

void Evaluator::write_back(ValueId slice) {
  const ValueId whole = sliced(graph_, slice);
  if (!whole) return;
  const Tensor& rows = (*this)[slice];
  const std::int64_t begin = graph_[graph_[slice].producer].attributes.integer("begin");
  const std::int64_t row = graph_[whole].shape.with(0, 1).elements();
  std::ranges::copy(rows.data, (*this)[whole].data.begin() + begin * row);
  write_back(whole);
}

void Evaluator::run() {
  for (OpId id : graph_[Graph::body].ops) run(id);
}

void Evaluator::rerun(ValueId changed) {
  const auto [entry, is_new] = dependents_.try_emplace(changed);
  if (is_new) {
    // A view changes with what it lies in, and that with the view.
    std::vector<bool> affected(graph_.storage_count());
    const auto at = [&](ValueId v) { return affected[graph_[v].storage.index]; };
    at(changed) = true;
    for (OpId id : graph_[Graph::body].ops) {
      const graph::Op& op = graph_[id];
      if (std::ranges::none_of(op.operands, [&](ValueId v) { return v && at(v); })) continue;
      entry->second.push_back(id);
      for (ValueId result : op.results) at(result) = true;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i] && op.effect(i) != graph::Effect::read) at(op.operands[i]) = true;
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
