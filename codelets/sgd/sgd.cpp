// sgd(weight, gradient, learning_rate [1], velocity?) -> weight, velocity?, new versions of both;
// attributes momentum and weight_decay: PyTorch's stochastic gradient descent (torch.optim.SGD
// without dampening and Nesterov), in one sweep:
//   g ← gradient + weight_decay · weight
//   velocity ← momentum · velocity + g,  weight ← weight − learning_rate · velocity
// Without momentum there is no velocity: weight ← weight − learning_rate · g. A velocity that
// starts as zeros makes the first step PyTorch's. The learning rate is data: it may change from
// step to step.
//
// multi_sgd(learning_rate [1], weight, gradient, velocity?, weight, gradient, velocity?, …) ->
// weight, velocity?, … does that to each weight. A gradient may have axes in front of its weight's:
// it is summed over them.
#include "codelets/sgd/sgd.hpp"

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

#include <array>
#include <cmath>

namespace arenite::codelets {
namespace {

using graph::Renews;

Results infer(const OpView& op) {
  expect_type(op, 0, DType::float32);
  expect_like(op, 1, 0);
  sgd::expect_rule(op, {});
  return sgd::versions(op);
}

/// Of numbers as floats hold them: a decay that is 0 there is none.
graph::ElementFormula formula(const OpView& op, bool has_velocity) {
  const sgd::Rule rule(op);
  const auto momentum = static_cast<double>(rule.momentum), decay = static_cast<double>(rule.decay);
  return has_velocity ? formula_named("sgd_momentum", {momentum, decay})
                      : formula_named("sgd", {decay});
}

graph::ElementFormula formula_of(const OpView& op) {
  return formula(op, op.has_operand(sgd::Operands{}.velocity));
}

Results infer_multi(const OpView& op) {
  for (std::size_t first = 1; first < op.operand_count(); first += sgd::Updates::stride) {
    const std::size_t gradient = first + 1, velocity = first + 2;
    expect_type(op, first, DType::float32);
    expect_type(op, gradient, DType::float32);
    sgd::expect_rule(op, {.weight = first, .learning_rate = 0, .velocity = velocity});
    const Shape &weight = op.operand(first).shape, &found = op.operand(gradient).shape;
    const int in_front = found.rank() - weight.rank();
    bool fits = in_front >= 0;
    for (int i = 0; fits && i < weight.rank(); ++i) fits = found[in_front + i] == weight[i];
    if (!fits) {
      fail({.found = operand_text(op, gradient) + " of shape " + to_string(found),
            .expected = to_string(weight) + ", the shape of 'weight' (" + op.operand(first).name +
                        "), or that with axes in front, to be summed over"});
    }
  }
  return sgd::versions(op);
}

graph::Cost multi_cost(const OpView& op) {
  graph::Cost all;
  const sgd::Updates updates(op);
  for (const sgd::Updates::Item& item : updates.items) {
    const auto n = static_cast<double>(item.count), terms = n * static_cast<double>(item.rows);
    all.flops += (updates.has_velocity ? 4 : 2) * n + terms - n;
    all.bytes += ((updates.has_velocity ? 4 : 2) * n + terms) * sizeof(float);
  }
  return all;
}

}  // namespace

sgd::Step::Step(const OpView& op, bool has_velocity)
    : loop_(expr::find_fused(formula(op, has_velocity).expression)) {
  if (!loop_) fail({.found = "no loop for a step of SGD", .expected = "one in formulas.def"});
}

void sgd::Step::operator()(float rate, const float* gradient, float* weight, float* velocity,
                           std::int64_t count) const {
  std::array<float, 16> rates;
  rates.fill(rate);
  const void* const operands[] = {weight, gradient, rates.data(), velocity};
  void* const results[] = {weight, velocity};
  constexpr std::uint64_t one_rate = 1u << Operands{}.learning_rate;
  loop_.run(results, operands, one_rate, static_cast<std::size_t>(count));
}

sgd::Updates::Updates(const OpView& op) : rule(op), has_velocity(op.has_operand(3)) {
  for (std::size_t first = 1; first < op.operand_count(); first += stride) {
    const std::int64_t count = op.operand(first).shape.elements(),
                       terms = op.operand(first + 1).shape.elements();
    items.push_back({.count = count, .rows = count > 0 ? terms / count : 0});
  }
}

void sgd::expect_rule(const OpView& op, const Operands& at) {
  expect_value(op, at.learning_rate, DType::float32, {1}, "one number");
  for (const auto& [name, below] : {std::pair("momentum", true), {"weight_decay", false}}) {
    const double given = op.real(name);
    if (given >= 0 && (below ? given < 1 : std::isfinite(given))) continue;
    fail({.found = std::string(name) + "=" + graph::to_string(*op.attributes().find(name)),
          .expected = below ? "a number from 0 to below 1" : "a number of at least 0"});
  }
  if (op.has_operand(at.velocity)) expect_like(op, at.velocity, at.weight);
}

std::vector<graph::OperandSchema> sgd::states() {
  return {
      {.name = "weight", .renews = Renews::state},
      {.name = "velocity", .optional = true, .given_with = "momentum", .renews = Renews::state}};
}

Results sgd::versions(const OpView& op) {
  Results all;
  for (std::size_t i = 0; i < op.operand_count(); ++i) {
    if (op.has_operand(i) && op.op().definition->operand_schema(i).renews != Renews::nothing)
      all.push_back({op.operand(i).type, op.operand(i).shape});
  }
  return all;
}

std::vector<graph::AttributeSchema> sgd::attributes() {
  return {{"momentum", graph::AttributeType::real, 0.0},
          {"weight_decay", graph::AttributeType::real, 0.0}};
}

void register_sgd(Registry& registry) {
  const auto states = sgd::states();
  registry.add({.name = "sgd",
                .operands = {states[0], {"gradient"}, {"learning_rate"}, states[1]},
                .results = {"weight", "velocity"},
                .attributes = sgd::attributes(),
                .infer = infer,
                .formula = formula_of,
                .cost = map_cost,
                .of_share = share_of_elements},
               {});
  registry.add({.name = "multi_sgd",
                .operands = {{"learning_rate"}, states[0], {"gradient"}, states[1]},
                .variadic = sgd::Updates::stride,
                .results = {"weight", "velocity"},
                .attributes = sgd::attributes(),
                .infer = infer_multi,
                .cost = multi_cost,
                .does = graph::GroupOf{.of = "sgd", .shared = 2, .summed = 1, .sums = "bias_grad"}},
               multi_sgd_kernels());
}

}  // namespace arenite::codelets
