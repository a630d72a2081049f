#include "tests/oracle/random_updates.hpp"

#include <arenite/train/optimizer.hpp>

namespace arenite::oracle {
namespace {

using graph::StorageClass;
using graph::ValueId;

/// What an op may make a new version of.
ValueId target(RandomValues& values, bool weights_too) {
  return values.any([&](ValueId id) {
    const StorageClass kind = values.cls(id);
    const bool floating =
        values.graph[id].type == DType::float32 || values.graph[id].type == DType::float64;
    const bool state = kind == StorageClass::buffer || kind == StorageClass::activation ||
                       kind == StorageClass::gradient;
    return floating && values.may_renew(id) &&
           (state || (weights_too && kind == StorageClass::parameter));
  });
}

}  // namespace

void add_optimizer(RandomValues& values, ValueId w, ValueId gradient, ValueId rate) {
  std::vector<std::string> names = optim::names();
  std::erase(names, "sgd");
  const std::string name = values.draw.of(names);
  std::vector<ValueId> operands{w, gradient, rate};
  const auto& known = operators().at(name)->operands;
  for (std::size_t i = operands.size(); i < known.size(); ++i) {
    if (known[i].renews != graph::Renews::nothing) {
      // Means of squares among them, which are more than the squares of means.
      operands.push_back(values.declare(DType::float32, values.shape(w), {0.5, 0.6},
                                        StorageClass::optimizer_state));
      values.renew(operands.back());
    } else {
      operands.push_back(values.declare(DType::float32, {1}, {0.5, 2}, StorageClass::buffer));
    }
  }
  values.builder.add(name, operands, {{"weight_decay", values.draw.of({0.0, 0.01})}});
}

void add_accumulation(RandomValues& values) {
  ValueId total = target(values, false);
  if (!total || values.draw.chance(40)) {
    total = values.declare(DType::float32, values.shape(values.tensor()), {}, StorageClass::buffer);
  }
  const ValueId value = values.like(values.graph[total].type, values.shape(total), {});
  values.renew(total);
  values.builder.add(values.draw.chance(75) ? "accumulate" : "assign", {total, value});
}

void add_update(RandomValues& values, Phase phase) {
  const ValueId w = target(values, phase == Phase::update);
  if (!w || values.graph[w].type != DType::float32) return;
  const ValueId gradient = values.floats(values.shape(w));
  values.renew(w);
  const ValueId rate = values.declare(DType::float32, {1}, {0.01, 0.1}, StorageClass::buffer);
  if (phase == Phase::update && values.draw.chance(50))
    return add_optimizer(values, w, gradient, rate);
  ValueId velocity;
  if (phase == Phase::update && values.draw.chance(50))
    velocity = values.declare(DType::float32, values.shape(w), {}, StorageClass::optimizer_state);
  if (velocity) values.renew(velocity);
  values.builder.add(
      "sgd", {w, gradient, rate, velocity},
      {{"momentum", velocity ? 0.9 : 0.0}, {"weight_decay", values.draw.of({0.0, 0.01})}});
}

void add_weight_update(RandomValues& values) {
  const ValueId x = values.matrix();
  const std::int64_t n = values.shape(x)[0], inputs = values.shape(x)[1],
                     outputs = values.draw.between(1, 40);
  const Shape of{inputs, outputs};
  const ValueId w = values.declare(DType::float32, of, {}, StorageClass::parameter);
  values.renew(w);
  const ValueId rate = values.declare(DType::float32, {1}, {0.01, 0.1}, StorageClass::buffer);
  ValueId velocity;
  if (values.draw.chance(50))
    velocity = values.declare(DType::float32, of, {}, StorageClass::optimizer_state);
  values.builder.add(
      "dense_grad_weight_sgd", {w, rate, velocity, x, values.floats({n, outputs})},
      {{"momentum", velocity ? 0.9 : 0.0}, {"weight_decay", values.draw.of({0.0, 0.01})}});
}

void add_multi_update(RandomValues& values) {
  const bool momentum = values.draw.chance(50);
  std::vector<ValueId> operands{
      values.declare(DType::float32, {1}, {0.01, 0.1}, StorageClass::buffer)};
  for (int count = values.draw.between(1, 3); count > 0; --count) {
    const ValueId rows = values.matrix();
    const Shape of = values.draw.chance(50) ? Shape{values.shape(rows)[1]} : values.shape(rows);
    operands.push_back(values.declare(DType::float32, of, {}, StorageClass::parameter));
    values.renew(operands.back());
    operands.push_back(rows);
    operands.push_back(momentum
                           ? values.declare(DType::float32, of, {}, StorageClass::optimizer_state)
                           : ValueId{});
  }
  values.builder.add(
      "multi_sgd", operands,
      {{"momentum", momentum ? 0.9 : 0.0}, {"weight_decay", values.draw.of({0.0, 0.01})}});
}

}  // namespace arenite::oracle
