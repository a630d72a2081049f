// Gradients of maps and reductions: maps and reductions again.
#include <arenite/expr/builder.hpp>
#include <arenite/expr/derive.hpp>
#include <arenite/expr/text.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"
#include "src/expr/formulas.hpp"

#include <numeric>

namespace arenite::codelets {
namespace {

Shape with_ones(const Shape& shape, int rank) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank - shape.rank()), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return Shape(dims);
}

ValueId shaped(graph::Builder& builder, ValueId value, const Shape& shape) {
  if (builder.graph()[value].shape == shape) return value;
  return builder.add1("reshape", {value}, {{"shape", dims_of(shape)}});
}

ValueId spread(graph::Builder& builder, ValueId value, const Shape& shape) {
  if (builder.graph()[value].shape == shape) return value;
  return builder.add1("broadcast_to", {value}, {{"shape", dims_of(shape)}});
}

/// The gradient of an operand, of that of its elements where all values of the op are `whole`: it
/// was repeated to that, and the gradient may be one for several elements.
ValueId summed_to(graph::Builder& builder, ValueId gradient, ValueId operand, const Shape& whole) {
  const Shape found = builder.graph()[gradient].shape, part = builder.graph()[operand].shape;
  if (found == part && part == whole) return gradient;
  if (found == whole && part.rank() == 1 && part[0] == whole.at(-1) &&
      builder.graph()[gradient].type == DType::float32)
    return builder.add1("bias_grad", {gradient});
  const Shape kept = with_ones(part, whole.rank());
  gradient = shaped(builder, gradient, with_ones(found, whole.rank()));
  bool is_repeated = false, is_summed = false;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    is_repeated = is_repeated || builder.graph()[gradient].shape[axis] != whole[axis];
    is_summed = is_summed || kept[axis] != whole[axis];
  }
  if (is_repeated) gradient = spread(builder, gradient, is_summed ? whole : kept);
  if (is_summed) gradient = builder.add1("sum_to", {gradient}, {{"shape", dims_of(kept)}});
  return shaped(builder, gradient, part);
}

/// The op of some values: of a formula that has a name by that.
std::vector<ValueId> map_op(graph::Builder& builder, const expr::Expression& expression,
                            const std::vector<ValueId>& operands,
                            const std::vector<std::int64_t>& axes) {
  if (expression.reduces()) {
    return builder.add(
        reduce_name, operands,
        {{"axes", axes}, {"keep", std::int64_t{1}}, {map_expression, expr::print(expression)}});
  }
  const auto types = expression.operands();
  const bool of_floats = !types.empty() && expr::is_float(types[0]);
  for (const expr::Formula& known : expr::formulas()) {
    if (of_floats && known.is_operator && known.numbers.empty() &&
        known.operands.size() == types.size() && known.standard(types[0]) == expression)
      return builder.add(known.name, operands);
  }
  return builder.add("map", operands, {{map_expression, expr::print(expression)}});
}

/// By result: equal numbers where something is computed for both.
std::vector<std::size_t> groups_of(const expr::Expression& expression) {
  std::vector<std::size_t> root(expression.nodes().size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t node) {
    while (root[node] != node) node = root[node] = root[root[node]];
    return node;
  };
  const auto is_computed = [&](expr::NodeId node) {
    return !expr::sources_of(expression[node]).empty();
  };
  for (expr::NodeId node = 0; node < root.size(); ++node) {
    for (const expr::NodeId source : expr::sources_of(expression[node])) {
      if (is_computed(source)) root[find(source)] = find(node);
    }
  }
  std::vector<std::size_t> groups;
  for (const expr::NodeId result : expression.results()) groups.push_back(find(result));
  return groups;
}

/// What an expression makes of values. Those that it leaves as they are need no op, and those that
/// have nothing in common need not be there at the same time.
std::vector<ValueId> mapped(graph::Builder& builder, const expr::Expression& expression,
                            const std::vector<ValueId>& operands,
                            const std::vector<std::int64_t>& axes) {
  expr::Builder formula;
  std::vector<expr::Value> given;
  for (const expr::Type type : expression.operands()) given.push_back(formula.operand(type));
  const auto all = formula.insert(expression, given);
  const auto groups = groups_of(expression);
  std::vector<ValueId> results(all.size());
  for (std::size_t first = 0; first < results.size(); ++first) {
    if (results[first]) continue;
    const expr::Node& node = expression[expression.results()[first]];
    if (node.function == expr::Function::operand) {
      results[first] = operands[node.payload];
      continue;
    }
    std::vector<expr::Value> together;
    for (std::size_t i = first; i < results.size(); ++i) {
      if (groups[i] == groups[first]) together.push_back(all[i]);
    }
    const expr::Reduced reduced = formula.finish_reduced(together);
    std::vector<ValueId> needed;
    for (const std::size_t operand : reduced.operands) needed.push_back(operands[operand]);
    const auto made = map_op(builder, reduced.expression, needed, axes);
    auto next = made.begin();
    for (std::size_t i = first; i < results.size(); ++i) {
      if (groups[i] == groups[first]) results[i] = *next++;
    }
  }
  return results;
}

}  // namespace

void map_gradient(graph::GradientContext& context) {
  const OpView forward = context.forward();
  const Elementwise of(forward);
  const expr::Expression& formula = of.formula;
  const Space& space = of.space;
  const auto varies = formula.varying();
  std::vector<bool> seeded, wanted;
  for (std::size_t i = 0; i < formula.results().size(); ++i)
    seeded.push_back(is_float(formula.result_type(i)) &&
                     (context.is_seed(i) || context.result_gradient(i)));
  for (std::size_t i = 0; i < formula.operands().size(); ++i) wanted.push_back(context.wants(i));
  const std::vector<bool> there(seeded.size(), true);
  const auto made = expr::derive(formula, seeded, wanted, there, space.group());
  if (!made) return;
  std::vector<std::int64_t> axes, grouped;
  for (int axis = 0; axis < space.whole.rank(); ++axis) {
    if (space.reduces(axis)) axes.push_back(axis);
    grouped.push_back(space.reduces(axis) ? 1 : space.whole[axis]);
  }
  std::vector<ValueId> operands;
  for (const expr::GradientOperand& operand : made->operands) {
    using Kind = expr::GradientOperand::Kind;
    ValueId value = operand.kind == Kind::seed      ? context.result_gradient(operand.number)
                    : operand.kind == Kind::operand ? context.operand(operand.number)
                                                    : context.result(operand.number);
    if (operand.kind != Kind::operand && !axes.empty() &&
        !varies[formula.results()[operand.number]])
      value = shaped(context.builder(), value, Shape(grouped));
    operands.push_back(value);
  }
  const std::vector<ValueId> gradients =
      mapped(context.builder(), made->expression, operands, axes);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::size_t operand = made->of[i];
    context.set(operand,
                summed_to(context.builder(), gradients[i], context.operand(operand), space.whole));
  }
}

}  // namespace arenite::codelets
