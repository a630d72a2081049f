// Optimizers: each is a formula of formulas.def that makes a weight's next version, and those of
// what the optimizer remembers of it, in one sweep.
//
//   adam(weight, gradient, learning_rate [1], exp_avg, exp_avg_sq, unbiased_avg [1],
//        unbiased_root [1]) -> weight, exp_avg, exp_avg_sq
//
// States are like the weight, zeros at first. What stands behind them is the same for all weights
// of a step (OperatorDefinition::each_step); a number that only that depends on, as adagrad's
// lr_decay, says nothing to an op written by hand. `sgd`, which kernels of products do too, has a
// folder of its own.
#include <arenite/expr/builder.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

#include <array>
#include <numeric>

namespace arenite::codelets {
namespace {

using expr::Formula;

constexpr std::size_t rate = 2;  ///< the operand; states follow

/// Whether an operand has a new version: the weight and its states, of which the formula has
/// results.
bool is_renewed(const Formula& formula, std::size_t operand) {
  const std::size_t states = formula.standard(expr::Type::float32).results().size() - 1;
  return operand == 0 || (operand > rate && operand <= rate + states);
}

Results infer(const OpView& op, const Formula& formula) {
  expect_type(op, 0, DType::float32);
  const expr::Expression made = made_with_numbers(op, formula, expr::Type::float32);
  if (formula.each_step) expect_numbers(op, *formula.each_step);
  const std::size_t wanted = made.operands().size();
  if (op.operand_count() != wanted) {
    fail({.found = std::to_string(op.operand_count()) + " operands",
          .expected = std::to_string(wanted) + " with these numbers"});
  }
  expect_axes_of(made, op.operand(0).shape);
  Results versions;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (is_renewed(formula, i)) versions.push_back({DType::float32, op.operand(0).shape});
    if (i == 1 || is_renewed(formula, i)) {
      expect_like(op, i, 0);
    } else {
      expect_value(op, i, DType::float32, {1}, "one number");
    }
  }
  return versions;
}

graph::ElementFormula formula_of(const OpView& op, const Formula& formula) {
  graph::ElementFormula made{
      formula.with(expr::Type::float32, numbers_of(op.attributes(), formula))};
  if (formula.is_of_rows) {
    made.axes.resize(static_cast<std::size_t>(op.operand(0).shape.rank()));
    std::iota(made.axes.begin(), made.axes.end(), 0);
  }
  return made;
}

/// In float64, of which float32 are made.
expr::Expression each_step(const Formula& formula, const graph::Attributes& attributes) {
  expr::Builder builder;
  const std::array step{builder.cast(expr::Type::float64, builder.operand(expr::Type::int64))};
  std::vector<expr::Value> results =
      builder.insert(formula.with(expr::Type::float64, numbers_of(attributes, formula)), step);
  for (expr::Value& result : results) result = builder.cast(expr::Type::float32, result);
  return builder.finish(results);
}

}  // namespace

graph::OperatorDefinition optimizer(std::shared_ptr<const Formula> formula) {
  graph::OperatorDefinition definition{
      .name = formula->name,
      .attributes = schema_of(*formula),
      .infer = [formula](const OpView& op) { return infer(op, *formula); },
      .formula = [formula](const OpView& op) { return formula_of(op, *formula); },
      .cost = map_cost};
  if (!formula->is_of_rows) definition.of_share = share_of_numbered;
  for (std::size_t i = 0; i < formula->operands.size(); ++i) {
    const bool has_version = is_renewed(*formula, i);
    // Numbers may make some of what is new in each step the same: `infer` knows how many there are.
    definition.operands.push_back(
        {.name = formula->operands[i],
         .optional = i > rate && !has_version,
         .renews = has_version ? graph::Renews::state : graph::Renews::nothing});
    if (has_version) definition.results.push_back(formula->operands[i]);
  }
  if (!formula->each_step) return definition;
  for (graph::AttributeSchema& number : schema_of(*formula->each_step)) {
    const auto is_it = [&](const Formula::Number& own) { return own.name == number.name; };
    if (std::ranges::none_of(formula->numbers, is_it))
      definition.attributes.push_back(std::move(number));
  }
  definition.each_step = [step = formula->each_step](const graph::Attributes& attributes) {
    return each_step(*step, attributes);
  };
  return definition;
}

void register_optimizer(Registry& registry) {
  for (const Formula& formula : expr::formulas()) {
    if (formula.is_optimizer) registry.add(optimizer(std::make_shared<const Formula>(formula)), {});
  }
}

}  // namespace arenite::codelets
