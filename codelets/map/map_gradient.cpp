// Gradients of maps and reductions: maps and reductions again.
#include <arenite/expr/builder.hpp>
#include <arenite/expr/derive.hpp>
#include <arenite/expr/text.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"
#include "src/expr/formulas.hpp"
#include "src/expr/functions.hpp"

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

/// The gradient of a part that was repeated to `whole`, of those of its elements there; one may be
/// for several elements.
ValueId summed_to(graph::Builder& builder, ValueId gradient, const Shape& part,
                  const Shape& whole) {
  const Shape found = builder.graph()[gradient].shape;
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
class Mapper {
 public:
  /// `operands` are repeated to `whole`, which is reduced along `axes`.
  Mapper(graph::Builder& builder, const expr::Expression& expression, const Shape& whole,
         std::vector<ValueId> operands, std::vector<std::int64_t> axes)
      : builder_(builder),
        expression_(expression),
        whole_(whole),
        operands_(std::move(operands)),
        axes_(std::move(axes)),
        results_(expression.results().size()) {
    std::vector<expr::Value> given;
    for (const expr::Type type : expression.operands()) given.push_back(formula_.operand(type));
    for (const expr::Node& node : expression.nodes()) {
      std::vector<expr::Value> sources;
      for (const expr::NodeId source : expr::sources_of(node)) sources.push_back(nodes_[source]);
      nodes_.push_back(node.function == expr::Function::operand ? given[node.payload]
                                                                : formula_.copy(node, sources));
    }
    for (const expr::NodeId result : expression.results()) all_.push_back(nodes_[result]);
    for (const expr::NodeId result : expression.results()) needed_.push_back(needed_by(result));
  }

  /// By result, summed to the shape of a part that was repeated.
  std::vector<ValueId> map(const std::vector<Shape>& parts) {
    std::vector<bool> is_summed(results_.size(), false);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const expr::Node& node = expression_[expression_.results()[i]];
      if (node.function == expr::Function::operand) {
        results_[i] = operands_[node.payload];
      } else if (can_be_summed(i) && with_ones(parts[i], whole_.rank()) != whole_) {
        results_[i] = summed(i, with_ones(parts[i], whole_.rank()));
        is_summed[i] = static_cast<bool>(results_[i]);
      }
    }
    const auto groups = groups_of(expression_);
    for (std::size_t first = 0; first < results_.size(); ++first) {
      if (results_[first]) continue;
      std::vector<std::size_t> which;
      std::vector<expr::Value> together;
      for (std::size_t i = first; i < results_.size(); ++i) {
        if (results_[i] || groups[i] != groups[first]) continue;
        which.push_back(i);
        together.push_back(all_[i]);
      }
      const expr::Reduced reduced = formula_.finish_reduced(together);
      const auto made = map_op(builder_, reduced.expression, values_of(reduced, true), axes_);
      for (std::size_t i = 0; i < which.size(); ++i) results_[which[i]] = made[i];
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      results_[i] = is_summed[i] ? shaped(builder_, results_[i], parts[i])
                                 : summed_to(builder_, results_[i], parts[i], whole_);
    }
    return results_;
  }

 private:
  std::vector<bool> needed_by(expr::NodeId result) const {
    std::vector<bool> needed(expression_.nodes().size(), false);
    needed[result] = true;
    for (std::size_t node = needed.size(); node-- > 0;) {
      if (!needed[node]) continue;
      for (const auto source : expr::sources_of(expression_[static_cast<expr::NodeId>(node)]))
        needed[source] = true;
    }
    return needed;
  }

  /// What is left of the operands. What asks for the elements of groups, or for places, goes
  /// through all that there are: then one operand at least is to be `whole_`.
  std::vector<ValueId> values_of(const expr::Reduced& reduced, bool may_repeat) {
    std::vector<ValueId> needed;
    for (const std::size_t operand : reduced.operands) needed.push_back(operands_[operand]);
    const bool goes_through_all =
        reduced.expression.reduces() ||
        std::ranges::any_of(reduced.expression.nodes(), [](const expr::Node& node) {
          return node.function == expr::Function::index;
        });
    if (!may_repeat || !goes_through_all || is_whole(needed)) return needed;
    const auto types = reduced.expression.operands();
    const auto real = std::ranges::find_if(types, expr::is_float);
    ValueId& value = needed[static_cast<std::size_t>(real - types.begin())];
    value = spread(builder_,
                   shaped(builder_, value, with_ones(builder_.graph()[value].shape, whole_.rank())),
                   whole_);
    return needed;
  }

  /// Whether `values_of` finds an operand that it may repeat, where it needs one.
  bool can_be_whole(const expr::Reduced& reduced) const {
    std::vector<ValueId> needed;
    for (const std::size_t operand : reduced.operands) needed.push_back(operands_[operand]);
    const auto types = reduced.expression.operands();
    return is_whole(needed) || std::ranges::any_of(types, expr::is_float);
  }

  /// Whether values are repeated to the whole shape, with no other operand.
  bool is_whole(const std::vector<ValueId>& values) const {
    for (int axis = 0; axis < whole_.rank(); ++axis) {
      const bool is_there = std::ranges::any_of(values, [&](ValueId value) {
        const Shape& shape = builder_.graph()[value].shape;
        const int own = axis - (whole_.rank() - shape.rank());
        return own >= 0 && shape[own] == whole_[axis];
      });
      if (!is_there && whole_[axis] != 1) return false;
    }
    return true;
  }

  /// Its elements need lie nowhere: nobody else reads them, or what is dear in them.
  bool can_be_summed(std::size_t result) const {
    for (expr::NodeId node = 0; node < expression_.nodes().size(); ++node) {
      if (!needed_[result][node]) continue;
      const expr::Function function = expression_[node].function;
      if (expr::is_reduction(function)) continue;  // what it is of is asked about
      for (std::size_t other = 0; other < results_.size(); ++other) {
        if (other == result || !needed_[other][node]) continue;
        if (node == expression_.results()[result] || !expr::info(function).is_cheap()) return false;
      }
    }
    return true;
  }

  /// In a result, what is made of a group's elements and read with each of them: it is made before
  /// the sum, which is over other groups. The operands that stand for it there are the last ones.
  struct Cut {
    std::vector<expr::Value> first;
    expr::Reduced sum;
  };
  Cut cut(std::size_t result) {
    const auto varies = expression_.varying();
    std::vector<bool> is_of_group(varies.size(), false), is_first(varies.size(), false);
    for (expr::NodeId id = 0; id < varies.size(); ++id) {
      is_of_group[id] = expr::is_reduction(expression_[id].function);
      for (const expr::NodeId source : expr::sources_of(expression_[id]))
        is_of_group[id] = is_of_group[id] || (!varies[source] && is_of_group[source]);
      is_of_group[id] = is_of_group[id] && !varies[id];
    }
    const auto note = [&](expr::NodeId id) { is_first[id] = is_first[id] || is_of_group[id]; };
    note(expression_.results()[result]);
    for (expr::NodeId id = 0; id < varies.size(); ++id) {
      if (!needed_[result][id] || !varies[id]) continue;
      for (const expr::NodeId source : expr::sources_of(expression_[id])) note(source);
    }
    Cut made;
    expr::Builder after;
    std::vector<expr::Value> operands, values;
    for (const expr::Type type : expression_.operands()) operands.push_back(after.operand(type));
    for (expr::NodeId id = 0; id < varies.size(); ++id) {
      const expr::Node& node = expression_[id];
      std::vector<expr::Value> sources;
      for (const expr::NodeId source : expr::sources_of(node)) sources.push_back(values[source]);
      if (is_first[id]) {
        made.first.push_back(nodes_[id]);
        values.push_back(after.operand(node.type));
      } else if (node.function == expr::Function::operand) {
        values.push_back(operands[node.payload]);
      } else if (node.function == expr::Function::count) {
        values.push_back(after.constant(node.type, group()));
      } else {
        values.push_back(after.copy(node, sources));
      }
    }
    made.sum = after.finish_reduced(std::array{sum(values[expression_.results()[result]])});
    return made;
  }

  std::int64_t group() const {
    std::int64_t count = 1;
    for (const std::int64_t axis : axes_) count *= whole_[static_cast<int>(axis)];
    return count;
  }

  /// None where it is one for several elements.
  ValueId summed(std::size_t result, const Shape& part) {
    const Cut of = cut(result);
    std::vector<ValueId> needed;
    for (const std::size_t operand : of.sum.operands) {
      if (operand < operands_.size()) needed.push_back(operands_[operand]);
    }
    const auto is_truth = [](expr::Value value) { return value.type() == expr::Type::boolean; };
    if (!is_whole(needed) || std::ranges::any_of(of.first, is_truth)) return {};
    if (!of.first.empty()) {
      const expr::Reduced first = formula_.finish_reduced(of.first);
      if (!can_be_whole(first)) return {};
      const auto made = map_op(builder_, first.expression, values_of(first, true), axes_);
      for (const std::size_t operand : of.sum.operands) {
        if (operand >= operands_.size()) needed.push_back(made[operand - operands_.size()]);
      }
    }
    List axes;
    for (int axis = 0; axis < whole_.rank(); ++axis) {
      if (part[axis] != whole_[axis]) axes.push_back(axis);
    }
    return map_op(builder_, of.sum.expression, needed, axes).front();
  }

  using List = std::vector<std::int64_t>;
  graph::Builder& builder_;
  const expr::Expression& expression_;
  const Shape& whole_;
  std::vector<ValueId> operands_;
  List axes_;
  expr::Builder formula_;
  std::vector<expr::Value> nodes_;         // by node
  std::vector<expr::Value> all_;           // by result
  std::vector<std::vector<bool>> needed_;  // by result, by node
  std::vector<ValueId> results_;
};

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
  std::vector<Shape> parts;
  for (const std::size_t operand : made->of)
    parts.push_back(context.builder().graph()[context.operand(operand)].shape);
  const auto gradients =
      Mapper(context.builder(), made->expression, space.whole, std::move(operands), std::move(axes))
          .map(parts);
  for (std::size_t i = 0; i < gradients.size(); ++i) context.set(made->of[i], gradients[i]);
}

void stated_gradient(graph::GradientContext& context, const expr::Formula& formula) {
  const ValueId gradient = context.result_gradient(0);
  if (!gradient || !context.wants(0)) return;
  std::vector<ValueId> operands;
  for (const std::string& name : formula.operands)
    operands.push_back(name == "gradient" ? gradient : context.result(0));
  const expr::Type type = type_of(context.forward().result(0).type);
  context.set(
      0, map_op(context.builder(), formula.standard(type), operands, std::vector<std::int64_t>{-1})
             .front());
}

}  // namespace arenite::codelets
