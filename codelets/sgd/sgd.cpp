// sgd(weight, gradient, learning_rate [1], velocity?), attributes momentum and weight_decay:
// PyTorch's stochastic gradient descent (torch.optim.SGD without dampening and Nesterov), in one
// pass:
//   g ← gradient + weight_decay · weight
//   velocity ← momentum · velocity + g,  weight ← weight − learning_rate · velocity
// Without momentum there is no velocity: weight ← weight − learning_rate · g. A velocity that
// starts as zeros makes the first step PyTorch's. The learning rate is data: it may change from
// step to step.
#include "codelets/sgd/sgd.hpp"

#include "codelets/image.hpp"
#include "codelets/rules.hpp"

#include <cmath>

namespace arenite::codelets {
namespace {

using graph::Effect;
using graph::OpView;

std::vector<graph::ResultType> infer(const OpView& op) {
  expect_type(op, 0, DType::float32);
  expect_like(op, 1, 0);
  sgd::expect_rule(op, {});
  return {};
}

graph::Cost cost(const OpView& op) {
  const auto n = static_cast<double>(op.operand(0).shape.elements());
  const bool velocity = op.has_operand(3);
  // Weight and velocity are read and written.
  return {.flops = (velocity ? 4 : 2) * n, .bytes = (velocity ? 5 : 3) * n * sizeof(float)};
}

}  // namespace

void sgd::expect_rule(const OpView& op, const Operands& at) {
  expect_type(op, at.learning_rate, DType::float32);
  expect_shape(op, at.learning_rate, {1}, "one number");
  for (const char* name : {"momentum", "weight_decay"}) {
    const double value = op.real(name);
    if (!(value >= 0) || !std::isfinite(value)) {
      fail({.found = std::string(name) + "=" + graph::to_string(value),
            .expected = "a number of at least 0"});
    }
  }
  const std::string momentum = "momentum=" + graph::to_string(op.real("momentum"));
  if (op.has_operand(at.velocity)) {
    expect_like(op, at.velocity, at.weight);
    if (op.real("momentum") == 0) {
      fail({.found = momentum + " with a velocity",
            .expected = "no velocity",
            .hint = "leave the operand out: without momentum it would only take memory"});
    }
  } else if (op.real("momentum") != 0) {
    fail({.found = momentum + " without a velocity",
          .expected =
              "operand 'velocity', float32 of shape " + to_string(op.operand(at.weight).shape)});
  }
}

std::vector<graph::AttributeSchema> sgd::attributes() {
  return {{"momentum", graph::AttributeType::real, 0.0},
          {"weight_decay", graph::AttributeType::real, 0.0}};
}

void register_sgd(Registry& registry) {
  graph::OperatorDefinition definition;
  definition.name = "sgd";
  definition.operands = {{"weight", Effect::read_write},
                         {"gradient"},
                         {"learning_rate"},
                         {"velocity", Effect::read_write, true}};
  definition.attributes = sgd::attributes();
  definition.infer = infer;
  definition.by_rows = true;
  definition.optimizer_state = [](const graph::Attributes& attributes) -> std::vector<std::string> {
    const bool momentum = attributes.has("momentum") && attributes.real("momentum") != 0;
    return {momentum ? "velocity" : ""};
  };
  definition.cost = cost;
  registry.add(std::move(definition), sgd_kernels());
}

}  // namespace arenite::codelets
