#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/train/optimizer.hpp>

#include "src/expr/formulas.hpp"
#include "src/graph/rate_schedules.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace arenite::optim {

std::vector<std::string> names() {
  std::vector<std::string> all = operators().names();
  std::erase_if(all,
                [](const std::string& name) { return !operators().find(name)->is_optimizer(); });
  return all;
}

Optimizer named(std::string_view name, const graph::Attributes& numbers,
                std::optional<float> learning_rate) {
  const auto definition = operators().find(name);
  if (!definition || !definition->is_optimizer()) {
    fail({.found = fmt::format("optimizer '{}'", name),
          .expected = fmt::format("one of {}", fmt::join(names(), ", "))});
  }
  // Its own checks, on a weight of one number.
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  const graph::Attributes all = definition->with_defaults(numbers);
  std::vector<graph::ValueId> operands;
  for (const graph::OperandSchema& operand : definition->operands) {
    const bool is_given = !operand.optional || definition->gives(operand, all);
    operands.push_back(
        is_given ? builder.declare(operand.name, DType::float32, {1}, graph::StorageClass::buffer)
                 : graph::ValueId{});
  }
  builder.add(name, std::move(operands), numbers);
  const expr::Formula* formula = expr::find_formula(name);
  const bool is_row = formula != nullptr && formula->is_optimizer();
  const float rate = learning_rate ? *learning_rate
                     : is_row      ? static_cast<float>(formula->learning_rate)
                                   : SgdOptions().lr;
  graph::check_learning_rate(rate);
  return {.learning_rate = rate, .name = std::string(name), .attributes = all};
}

std::string schedule(std::string_view name, const graph::Attributes& numbers) {
  return graph::rate_schedule(name, numbers);
}

Optimizer sgd(SgdOptions options) {
  graph::check_learning_rate(options.lr);
  const bool sound = options.momentum >= 0 && options.momentum < 1 &&
                     std::isfinite(options.weight_decay) && options.weight_decay >= 0;
  if (!sound) {
    fail({.found = "sgd with momentum " + std::to_string(options.momentum) + ", weight decay " +
                   std::to_string(options.weight_decay),
          .expected = "a momentum of 0 to below 1, a weight decay of at least 0"});
  }
  return {.learning_rate = options.lr,
          .name = "sgd",
          .attributes = {{"momentum", static_cast<double>(options.momentum)},
                         {"weight_decay", static_cast<double>(options.weight_decay)}}};
}

}  // namespace arenite::optim
