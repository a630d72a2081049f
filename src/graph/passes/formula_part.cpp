#include "src/graph/passes/formula_part.hpp"

#include "src/expr/functions.hpp"
#include "src/graph/values.hpp"

#include <algorithm>
#include <utility>

namespace arenite::graph {
namespace {

/// So that it still runs in registers, and in one kernel of a GPU.
constexpr std::size_t most_operands = 12, most_results = 4, most_nodes = 64;

int sweeps_of(const expr::Expression& expression) {
  std::vector<int> stage(expression.nodes().size(), 0);
  int sweeps = 1;
  const auto varies = expression.varying();
  for (expr::NodeId id = 0; id < stage.size(); ++id) {
    for (const expr::NodeId source : expr::sources_of(expression[id]))
      stage[id] = std::max(stage[id], stage[source]);
    if (expr::is_reduction(expression[id].function)) sweeps = std::max(sweeps, ++stage[id]);
  }
  for (const expr::NodeId result : expression.results()) {
    if (varies[result]) sweeps = std::max(sweeps, stage[result] + 1);
  }
  return sweeps;
}

}  // namespace

std::vector<expr::Value> FormulaPart::Written::insert(const expr::Expression& expression,
                                                      const std::vector<ValueId>& of) {
  std::vector<expr::Value> given;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto found = std::ranges::find(known, of[i], &std::pair<ValueId, expr::Value>::first);
    if (found != known.end()) {
      given.push_back(found->second);
      continue;
    }
    given.push_back(builder.operand(expression.operands()[i]));
    known.emplace_back(of[i], given.back());
    operands.push_back(of[i]);
  }
  return builder.insert(expression, given);
}

std::optional<FormulaPart> FormulaPart::of(const Graph& graph, OpId id) {
  const Op& op = graph[id];
  const auto renews = [](const OperandSchema& operand) {
    return operand.renews != Renews::nothing;
  };
  if (!op.definition->formula || std::ranges::any_of(op.definition->operands, renews) ||
      !std::ranges::all_of(op.operands, [](ValueId operand) { return bool(operand); }))
    return std::nullopt;
  ElementFormula formula = op.definition->formula(OpView(graph, op));
  if (!formula.is_exact) return std::nullopt;
  FormulaPart part;
  part.ops_ = {id};
  part.results_ = op.results;
  part.operands_ = op.operands;
  part.reduces_ = formula.expression.reduces();
  part.whole_ = part.reduces_ ? joint_shape(graph, op.operands) : graph[op.results.front()].shape;
  if (part.whole_.elements() == 0) return std::nullopt;  // some reductions are of some at least
  part.keeps_axes_ = formula.keeps_axes;
  part.is_dear_ = std::ranges::any_of(formula.expression.nodes(), [](const expr::Node& node) {
    return !expr::info(node.function).is_cheap();
  });
  part.reduced_.assign(static_cast<std::size_t>(part.whole_.rank()), false);
  if (part.reduces_) {
    for (const std::int64_t axis : formula.axes)
      part.reduced_.at(static_cast<std::size_t>(axis < 0 ? axis + part.whole_.rank() : axis)) =
          true;
    part.sweeps_ = sweeps_of(formula.expression);
  }
  part.expression_ = std::move(formula.expression);
  return part;
}

/// Those that results need; returns how many nodes do. None: they are too many.
std::optional<std::size_t> FormulaPart::find_operands() {
  const expr::Builder& builder = written_->builder;
  std::vector<expr::NodeId> open;
  std::vector<bool> is_needed(builder.node_count(), false);
  const auto need = [&](expr::NodeId id) {
    if (!is_needed[id]) open.push_back(id);
    is_needed[id] = true;
  };
  for (const expr::Value& result : made_) need(result.node());
  std::vector<bool> is_operand(written_->operands.size(), false);
  std::size_t count = 0;
  while (!open.empty()) {
    const expr::Node& node = builder[open.back()];
    open.pop_back();
    if (++count > most_nodes) return std::nullopt;
    if (node.function == expr::Function::operand) is_operand[node.payload] = true;
    for (const expr::NodeId source : expr::sources_of(node)) need(source);
  }
  for (std::size_t i = 0; i < is_operand.size(); ++i) {
    if (is_operand[i]) operands_.push_back(written_->operands[i]);
  }
  return operands_.empty() || operands_.size() > most_operands ? std::nullopt
                                                               : std::optional(count);
}

std::optional<FormulaPart> FormulaPart::joined(const Graph& graph, const FormulaPart& made,
                                               const FormulaPart& reads,
                                               const std::vector<ValueId>& kept) {
  if (!kept.empty() && reads.results_.size() + kept.size() > most_results) return std::nullopt;
  FormulaPart both;
  both.ops_ = made.ops_;
  both.ops_.insert(both.ops_.end(), reads.ops_.begin(), reads.ops_.end());
  both.whole_ = reads.whole_;
  both.reduces_ = made.reduces_ || reads.reduces_;
  both.reduced_ = made.reduces_ ? made.reduced_ : reads.reduced_;
  both.keeps_axes_ = reads.keeps_axes_;
  both.is_dear_ = made.is_dear_ || reads.is_dear_;
  both.written_ = made.written_ ? made.written_ : std::make_shared<Written>();
  Written& written = *both.written_;
  const auto between =
      made.written_ ? made.made_ : written.insert(made.expression(), made.operands_);
  for (std::size_t i = 0; i < made.results_.size(); ++i)
    written.known.emplace_back(made.results_[i], between[i]);
  both.results_ = reads.results_;
  both.made_ = written.insert(reads.expression(), reads.operands_);
  for (std::size_t i = 0; i < made.results_.size(); ++i) {
    if (std::ranges::find(kept, made.results_[i]) == kept.end()) continue;
    both.results_.push_back(made.results_[i]);
    both.made_.push_back(between[i]);
  }
  if (!both.find_operands() || joint_shape(graph, both.operands_) != both.whole_)
    return std::nullopt;
  if (!both.reduces_) return both;
  const expr::Expression& after = both.expression();
  if (!after.reduces()) return std::nullopt;
  both.sweeps_ = sweeps_of(after);
  // What had all elements is not to become one for a group.
  const expr::Expression& before = reads.expression();
  const auto varied = before.varying(), varies = after.varying();
  for (std::size_t i = 0; i < after.results().size(); ++i) {
    const bool has_all =
        i >= before.results().size() || !reads.reduces_ || varied[before.results()[i]];
    if (has_all != varies[after.results()[i]]) return std::nullopt;
  }
  return both;
}

bool FormulaPart::does(OpId id) const { return std::ranges::find(ops_, id) != ops_.end(); }

const expr::Expression& FormulaPart::expression() const {
  if (!expression_) expression_ = written_->builder.finish_reduced(made_).expression;
  return *expression_;
}

ElementFormula FormulaPart::formula() const {
  ElementFormula made{.expression = expression(), .keeps_axes = keeps_axes_};
  for (std::size_t axis = 0; axis < reduced_.size(); ++axis) {
    if (reduced_[axis]) made.axes.push_back(static_cast<std::int64_t>(axis));
  }
  return made;
}

bool FormulaPart::is_one_a_group(const Shape& shape) const {
  const int missing = whole_.rank() - shape.rank();
  for (int axis = 0; axis < whole_.rank(); ++axis) {
    const std::int64_t own = axis < missing ? 1 : shape[axis - missing];
    if (own != (reduced_[static_cast<std::size_t>(axis)] ? 1 : whole_[axis])) return false;
  }
  return missing >= 0;
}

}  // namespace arenite::graph
