// dropout(x; rate, seed) -> y: in training each element is 0 with the probability `rate`, else
// divided by 1 − rate; in an evaluation y is x.
//
// dropout_in_training(x, position; …) is what the mode makes of it: which elements are 0 is a
// function of the key and of the place of the element's sample among all that training draws. So no
// mask is kept, and none depends on how a batch is cut; the gradient is the same op of the
// gradient.
#include <arenite/expr/builder.hpp>
#include <arenite/random.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

namespace arenite::codelets {
namespace {

void expect_rate(const OpView& op) {
  const double rate = op.real("rate");
  if (rate >= 0 && rate <= 1) return;
  fail({.found = "rate=" + graph::to_string(rate), .expected = "a number from 0 to 1"});
}

Results infer_dropout(const OpView& op) {
  expect_real(op, 0);
  expect_rate(op);
  return like_first(op);
}

/// Not negative.
std::int64_t key_of(std::int64_t seed, std::int64_t number) {
  const Philox random(static_cast<std::uint64_t>(seed), Purpose::dropout,
                      static_cast<std::uint32_t>(number));
  const PhiloxCounter words = random.block(0);
  return static_cast<std::int64_t>((std::uint64_t{words[0]} << 32 | words[1]) >> 1);
}

/// Each dropout of a graph has its own key, and so elements of its own.
std::vector<ValueId> in_mode(graph::ModeContext& context) {
  const graph::Attributes& given = context.op.attributes;
  const ValueId x = context.operands[0];
  if (context.mode == graph::Mode::evaluate || given.real("rate") == 0)
    return context.builder.add("identity", {x});
  const Shape shape = context.builder.graph()[x].shape;
  const std::int64_t all = shape.rank() > 0 ? std::max<std::int64_t>(shape[0], 1) : 1;
  const bool of_samples = context.samples > 0 && all % context.samples == 0;
  return context.builder.add("dropout_in_training", {x, context.position()},
                             {{"rate", given.real("rate")},
                              {"key", key_of(given.integer("seed"), context.number)},
                              {"rows", of_samples ? all / context.samples : all}});
}

Results infer_in_training(const OpView& op) {
  expect_value(op, 1, DType::int64, Shape{1}, "of one number");
  const std::int64_t rows = op.integer("rows");
  if (rows < 1) fail({.found = "rows=" + std::to_string(rows), .expected = "1 or more"});
  return infer_dropout(op);
}

/// Numbers are drawn by the elements' places if all rows of all steps stood one behind the other.
graph::ElementFormula formula_of(const OpView& op) {
  const double rate = op.real("rate");
  const Shape& shape = op.operand(0).shape;
  expr::Builder b;
  const auto x = b.operand(type_of(op.operand(0).type));
  auto place = b.operand(expr::Type::int64) * op.integer("rows") + op.integer("first");
  for (int axis = 0; axis < shape.rank(); ++axis)
    place = (axis > 0 ? place * shape[axis] : place) + b.index(axis);
  const auto is_left_out = uniform(place, op.integer("key")) < rate;
  return {b.finish({select(is_left_out, 0, x * (rate < 1 ? 1 / (1 - rate) : 0))})};
}

std::optional<graph::OfShare> of_share(const OpView& op, const graph::Share& share) {
  if (!share.has_rows(0) || !share.is_whole(1) || op.operand(0).shape.rank() == 0)
    return std::nullopt;
  graph::Attributes attributes = op.attributes();
  attributes.set("first", op.integer("first") + share.begin);
  return all_rows(op, std::move(attributes));
}

ValueId of_gradient(graph::GradientContext& context, ValueId gradient) {
  const graph::Attributes attributes = context.forward().attributes();
  const ValueId position = context.operand(1);
  return context.builder().add1("dropout_in_training", {gradient, position}, attributes);
}

}  // namespace

void register_dropout(Registry& registry) {
  using graph::AttributeType;
  registry.add({.name = "dropout",
                .operands = {{"x"}},
                .results = {"y"},
                .attributes = {{"rate", AttributeType::real, 0.5},
                               {"seed", AttributeType::integer, std::int64_t{0}}},
                .infer = infer_dropout,
                .in_mode = in_mode},
               {});
  registry.add({.name = "dropout_in_training",
                .operands = {{"x"}, {"position"}},
                .results = {"y"},
                .attributes = {{"rate", AttributeType::real, 0.5},
                               {"key", AttributeType::integer, std::int64_t{0}},
                               {"first", AttributeType::integer, std::int64_t{0}},
                               {"rows", AttributeType::integer, std::int64_t{1}}},
                .infer = infer_in_training,
                .gradient = gradient_of_first(of_gradient),
                .in_place = {{0, 0}},
                .formula = formula_of,
                .cost = map_cost,
                .of_share = of_share},
               {});
}

}  // namespace arenite::codelets
