#include "src/graph/passes/backward.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/regions.hpp>

#include <algorithm>
#include <set>

#include "src/graph/passes/shards.hpp"
#include "src/graph/passes/sharing.hpp"

namespace arenite::graph {
namespace {

void follow(const Graph& graph, RegionId region, std::vector<bool>& marked);

/// A carried value is marked when its first value is, or the next one that a trip yields.
void follow_loop(const Graph& graph, const Op& op, std::vector<bool>& marked) {
  const Region& body = graph[op.regions[0]];
  const std::size_t conditions = body.results.size() - op.results.size();
  for (bool settled = false; !settled;) {
    settled = true;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const ValueId carried = body.parameters[i + 1];
      if (marked[carried.index] ||
          !(marked[op.operands[i + 2].index] || marked[body.results[i + conditions].index]))
        continue;
      marked[carried.index] = marked[op.results[i].index] = true;
      settled = false;
    }
    if (!settled) follow(graph, op.regions[0], marked);
  }
}

/// Marks what the ops make of marked values.
void follow(const Graph& graph, RegionId region, std::vector<bool>& marked) {
  const auto is_marked = [&](ValueId id) { return id && marked[id.index]; };
  for (OpId id : graph[region].ops) {
    const Op& op = graph[id];
    for (RegionId inner : op.regions) follow(graph, inner, marked);
    if (op.definition->control == Control::branch) {
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        for (RegionId inner : op.regions) {
          if (is_marked(graph[inner].results[i])) marked[op.results[i].index] = true;
        }
      }
      continue;
    }
    if (op.definition->control == Control::loop) {
      follow_loop(graph, op, marked);
      continue;
    }
    bool reads = false;  // in a block perhaps
    for_each_named(graph, id, [&](ValueId v) { reads = reads || is_marked(v); });
    if (!reads) continue;
    for (ValueId result : op.results) marked[result.index] = true;
  }
}

}  // namespace

std::vector<bool> values_after(const Graph& graph, const std::vector<ValueId>& wrt) {
  std::vector<bool> marked(graph.value_count(), false);
  for (ValueId id : wrt) marked[id.index] = true;
  follow(graph, Graph::body, marked);
  return marked;
}

Backward::Backward(Builder& builder, RegionId forward, RegionId into,
                   const std::vector<bool>& wanted, const BatchCut& cut)
    : builder_(builder),
      forward_(forward),
      into_(into),
      ops_(builder.graph()[forward].ops),
      wanted_(wanted),
      cut_(cut) {}

void Backward::add_loss(ValueId loss) {
  if (graph()[loss].shape.elements() != 1) {
    fail({.found = "a loss of shape " + to_string(graph()[loss].shape),
          .expected = "a single element",
          .where = "value '" + graph()[loss].name + "'"});
  }
  if (is_loss(loss)) {
    fail({.found = "a loss given twice, '" + graph()[loss].name + "'",
          .expected = "each loss once",
          .where = "gradients",
          .hint = "its double is the sum of it and itself"});
  }
  losses_.push_back(loss);
}

void Backward::refuse_read_loss(OpId id) const {
  fail({.found = "a loss that other losses depend on",
        .expected = "losses that nothing reads",
        .where = describe(graph(), id)});
}

void Backward::add_part(ValueId value, ValueId gradient) { parts_[value].push_back(gradient); }

bool Backward::is_loss(ValueId id) const {
  return std::find(losses_.begin(), losses_.end(), id) != losses_.end();
}

void Backward::run(const std::function<void(ValueId)>& complete) {
  mark_relevant();
  const OpContext saved = builder_.context;
  for (const ValueId loss : losses_) {
    if (graph()[loss].producer || !wanted(loss)) continue;  // else its op's gradient begins with 1
    builder_.context = {.phase = Phase::backward, .lane = saved.lane, .where = graph()[loss].name};
    add_part(loss, add_full(into_, loss, 1));
    if (complete && pending_[loss] == 0) complete(loss);
  }
  for (auto it = ops_.rbegin(); it != ops_.rend(); ++it) {
    if (!relevant_[it->index]) continue;
    differentiate(*it);
    finish_complete(*it, complete);
  }
  builder_.context = saved;
}

/// What an op may send a gradient to. Each operand slot counts for itself, as x + x is twice x; a
/// block's captures count once.
std::vector<ValueId> Backward::sources(OpId id) const {
  const Op& op = graph()[id];
  std::vector<ValueId> all = captures(id);
  if (op.definition->control != Control::branch)
    all.insert(all.end(), op.operands.begin(), op.operands.end());
  return all;
}

/// What an op's blocks read from outside, ascending.
std::vector<ValueId> Backward::captures(OpId id) const {
  const Op& op = graph()[id];
  std::set<ValueId> made, named;
  const auto visit = [&](const auto& self, RegionId region) -> void {
    for (OpId inner : graph()[region].ops) {
      const Op& one = graph()[inner];
      made.insert(one.results.begin(), one.results.end());
      named.insert(one.operands.begin(), one.operands.end());
      for (RegionId deeper : one.regions) {
        made.insert(graph()[deeper].parameters.begin(), graph()[deeper].parameters.end());
        self(self, deeper);
      }
    }
    named.insert(graph()[region].results.begin(), graph()[region].results.end());
  };
  for (RegionId region : op.regions) {
    made.insert(graph()[region].parameters.begin(), graph()[region].parameters.end());
    visit(visit, region);
  }
  std::vector<ValueId> captured;
  std::set_difference(named.begin(), named.end(), made.begin(), made.end(),
                      std::back_inserter(captured));
  return captured;
}

/// One of these values that have gradients is a result of the op.
bool Backward::leads(OpId id, const std::set<ValueId>& to) const {
  const Op& op = graph()[id];
  return std::any_of(op.results.begin(), op.results.end(),
                     [&](ValueId v) { return to.contains(v) && wanted(v); });
}

/// For what is added beside an op of the forward part.
OpContext Backward::context_of(OpId forward) const {
  const Op& op = graph()[forward];
  return {.phase = op.phase, .lane = op.lane, .where = op.where};
}

void Backward::mark_relevant() {
  relevant_.assign(graph().op_count(), false);
  std::set<ValueId> reaches(losses_.begin(), losses_.end());
  for (const auto& [value, gradients] : parts_) reaches.insert(value);
  for (auto it = ops_.rbegin(); it != ops_.rend(); ++it) {
    if (!leads(*it, reaches)) continue;
    relevant_[it->index] = true;
    for (ValueId source : sources(*it)) {
      if (!wanted(source)) continue;
      reaches.insert(source);
      ++pending_[source];
    }
  }
}

void Backward::differentiate(OpId id) {
  // Copies: appending ops may move the graph's arrays.
  const Op op = graph()[id];
  builder_.context = {.phase = Phase::backward, .lane = op.lane, .where = op.where};
  if (op.definition->control == Control::branch) return differentiate_branch(id);
  if (op.definition->control == Control::loop) return differentiate_loop(id);
  std::vector<ValueId> result_gradients;
  std::size_t seed = GradientContext::no_seed;
  bool any = false;
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    result_gradients.push_back(total(op.results[i]));
    const bool loss = is_loss(op.results[i]);
    if (loss && result_gradients.back()) refuse_read_loss(id);
    if (loss) seed = i;
    any = any || loss || result_gradients.back();
  }
  if (!any) return;
  if (op.definition->in_mode) {
    fail({.found = "an operator that is another one in training on the way from a parameter to the "
                   "loss",
          .expected = "what it is in a mode, as where gradients are left to `train`",
          .where = describe(graph(), id)});
  }
  if (!op.definition->gradient) {
    fail({.found = "an operator without a gradient on the way from a parameter to the loss",
          .expected = "an operator whose definition has a `gradient` function",
          .where = describe(graph(), id)});
  }
  std::vector<bool> wants;
  for (ValueId operand : op.operands) wants.push_back(wanted(operand));
  GradientContext context(builder_, id, std::move(result_gradients), wants, seed);
  try {
    op.definition->gradient(context);
  } catch (const Error& error) {
    if (!error.text().where.empty()) throw;
    ErrorText text = error.text();
    text.where = describe(graph(), id);
    throw Error(text);
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (wants[i] && context.operand_gradient(i))
      add_part(op.operands[i], context.operand_gradient(i));
  }
}

ValueId Backward::total(ValueId id) {
  const auto known = parts_.find(id);
  if (known == parts_.end()) return {};
  std::vector<ValueId>& parts = known->second;
  if (parts.size() > 1) {
    std::vector<Term> terms;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      // A loop carries some: they are of its lane, as all in it.
      const bool made{graph()[*part].producer};
      terms.push_back({*part, made ? lane_of(graph(), *part) : builder_.context.lane});
    }
    const OpContext saved = builder_.context;
    builder_.context = {.phase = Phase::backward, .lane = saved.lane, .where = graph()[id].name};
    parts = {add_up(builder_, cut_, terms)};
    builder_.context = saved;
  }
  return parts.front();
}

void Backward::finish_complete(OpId id, const std::function<void(ValueId)>& complete) {
  for (ValueId source : sources(id)) {
    if (!wanted(source) || --pending_[source] > 0) continue;
    if (complete) complete(source);
  }
}

}  // namespace arenite::graph
