// normalize_channels(x [N, …, C], mean [C], rest [C], factor [C], bias? [C]) -> y: (x − mean −
// rest) · factor + bias, by channels. What the elements' type cannot hold of a mean is its rest: so
// large numbers keep the digits in which they differ. Two sums over all samples give the gradients
// of all that is of channels, in one sweep.
#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

#include <numeric>

namespace arenite::codelets {
namespace {

enum Operand : std::size_t { x, mean, rest, factor, bias };

Results infer(const OpView& op) {
  expect_real(op, x);
  const graph::Value& all = op.operand(x);
  if (all.shape.rank() < 2) {
    fail({.found = operand_text(op, x) + " of shape " + to_string(all.shape),
          .expected = "rank 2 or more, [N, ..., C]"});
  }
  for (std::size_t i = mean; i < op.operand_count(); ++i) {
    if (op.has_operand(i))
      expect_value(op, i, all.type, Shape{all.shape.at(-1)}, "the channels of 'x'");
  }
  return like_first(op);
}

/// x less the mean.
expr::Value distance(expr::Builder& b, expr::Type type) {
  const auto from = b.operand(type);
  const auto near = from - b.operand(type);
  return near - b.operand(type);
}

graph::ElementFormula formula(const OpView& op) {
  expr::Builder b;
  const expr::Type type = type_of(op.operand(x).type);
  const auto far = distance(b, type);
  const auto by = b.operand(type);
  return {b.finish({op.has_operand(bias) ? fma(far, by, b.operand(type)) : far * by})};
}

/// Two sums over all samples give all gradients but x's own.
void gradient(graph::GradientContext& context) {
  const ValueId slope = context.result_gradient(0);
  if (!slope) return;
  graph::Builder& builder = context.builder();
  const expr::Type type = type_of(context.forward().operand(x).type);
  const auto map = [&](std::vector<ValueId> operands, expr::Builder& b, const expr::Value& made) {
    return builder.add1("map", std::move(operands),
                        {{map_expression, expr::print(b.finish({made}))}});
  };
  if (context.wants(x)) {
    expr::Builder b;
    const auto g = b.operand(type);
    context.set(x, map({slope, context.operand(factor)}, b, g * b.operand(type)));
  }
  const bool has_bias = context.forward().has_operand(bias);
  const bool moves = context.wants(mean) || context.wants(rest);
  if (!moves && !context.wants(factor) && !(has_bias && context.wants(bias))) return;
  expr::Builder b;
  const auto far = distance(b, type);
  const auto g = b.operand(type);
  std::vector<ValueId> read{context.operand(x), context.operand(mean), context.operand(rest),
                            slope};
  std::vector<std::int64_t> axes(
      static_cast<std::size_t>(context.forward().operand(x).shape.rank() - 1));
  std::iota(axes.begin(), axes.end(), 0);
  const std::vector<ValueId> sums = builder.add(
      reduce_name, std::move(read),
      {{"axes", std::move(axes)},
       {"keep", std::int64_t{0}},
       {map_expression, expr::print(b.finish({sum(cast(expr::Type::float64, g)),
                                              sum(cast(expr::Type::float64, g * far))}))}});
  const auto narrowed = [&](ValueId of) {
    expr::Builder c;
    return map({of}, c, cast(type, c.operand(expr::Type::float64)));
  };
  if (moves) {
    expr::Builder c;
    const auto all = c.operand(expr::Type::float64);
    const ValueId made = map({sums[0], context.operand(factor)}, c,
                             cast(type, -all * cast(expr::Type::float64, c.operand(type))));
    for (const std::size_t i : {mean, rest}) {
      if (context.wants(i)) context.set(i, made);
    }
  }
  if (context.wants(factor)) context.set(factor, narrowed(sums[1]));
  if (has_bias && context.wants(bias)) context.set(bias, narrowed(sums[0]));
}

}  // namespace

void register_normalize_channels(Registry& registry) {
  registry.add({.name = "normalize_channels",
                .operands = {{"x"}, {"mean"}, {"rest"}, {"factor"}, {"bias", true}},
                .results = {"y"},
                .infer = infer,
                .gradient = gradient,
                .in_place = {{0, 0}},
                .formula = formula,
                .cost = map_cost,
                .of_share = share_of_elements},
               {});
}

}  // namespace arenite::codelets
