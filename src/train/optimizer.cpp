#include <arenite/error.hpp>
#include <arenite/graph/builder.hpp>
#include <arenite/graph/formula.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>
#include <arenite/train/optimizer.hpp>

#include "src/expr/formulas.hpp"
#include "src/graph/rate_schedules.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace arenite::optim {
namespace {

/// As its own checks have it, on a weight of one number.
Optimizer checked(std::shared_ptr<const graph::OperatorDefinition> rule,
                  const graph::Attributes& numbers, double learning_rate) {
  graph::Graph graph;
  graph::Builder builder(graph, operators());
  const graph::Attributes all = rule->with_defaults(numbers);
  std::size_t new_each_step = 0;
  if (rule->each_step) {
    const expr::Expression each_step = rule->each_step(all);
    new_each_step = each_step.results().size();
  }
  std::vector<graph::ValueId> operands;
  for (std::size_t i = 0; i < rule->operands.size(); ++i) {
    const graph::OperandSchema& operand = rule->operands[i];
    const bool is_given = i < 3 || operand.renews != graph::Renews::nothing
                              ? rule->gives(operand, all)
                              : new_each_step > 0 && new_each_step-- > 0;
    operands.push_back(
        is_given ? builder.declare(operand.name, DType::float32, {1}, graph::StorageClass::buffer)
                 : graph::ValueId{});
  }
  while (!operands.back()) operands.pop_back();
  builder.add(rule, std::move(operands), numbers);
  graph::check_learning_rate(learning_rate);
  Optimizer made;
  made.optimizer = std::move(rule);
  made.attributes = all;
  made.learning_rate = learning_rate;
  return made;
}

Optimizer adam_named(std::string name, const AdamOptions& o) {
  if (o.amsgrad) name += "_amsgrad";
  return named(name,
               {{"beta1", o.betas[0]},
                {"beta2", o.betas[1]},
                {"eps", o.eps},
                {"weight_decay", o.weight_decay}},
               o.lr);
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> all = operators().names();
  std::erase_if(all,
                [](const std::string& name) { return !operators().find(name)->is_optimizer(); });
  return all;
}

Optimizer named(std::string_view name, const graph::Attributes& numbers,
                std::optional<double> learning_rate) {
  auto rule = operators().find(name);
  if (!rule || !rule->is_optimizer()) {
    fail({.found = fmt::format("optimizer '{}'", name),
          .expected = fmt::format("one of {}", fmt::join(names(), ", "))});
  }
  const expr::Formula* formula = expr::find_formula(name);
  const bool is_row = formula != nullptr && formula->is_optimizer;
  const double usual = is_row ? formula->learning_rate : SgdOptions().lr;
  return checked(std::move(rule), numbers, learning_rate.value_or(usual));
}

Optimizer written(std::string_view formula, double learning_rate,
                  const graph::Attributes& numbers) {
  auto rule = graph::define(operators(), graph::parse_formula(formula));
  graph::check_optimizer(*rule);
  return checked(std::move(rule), numbers, learning_rate);
}

Optimizer sgd(const SgdOptions& o) {
  const bool sound = o.momentum >= 0 && o.momentum < 1 && std::isfinite(o.weight_decay) &&
                     o.weight_decay >= 0 && o.dampening >= 0 && o.dampening < 1;
  if (!sound) {
    fail({.found = fmt::format("sgd with momentum {}, weight decay {}, dampening {}", o.momentum,
                               o.weight_decay, o.dampening),
          .expected = "a momentum and dampening of 0 to below 1, a weight decay of at least 0"});
  }
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0)) {
    fail({.found =
              fmt::format("nesterov with momentum {} and dampening {}", o.momentum, o.dampening),
          .expected = "a momentum above 0 and no dampening"});
  }
  const bool is_dampened = o.momentum > 0 && o.dampening > 0;
  graph::Attributes numbers{{"momentum", o.momentum}, {"weight_decay", o.weight_decay}};
  if (is_dampened) numbers.set("dampening", o.dampening);
  return named(o.nesterov ? "sgd_nesterov" : is_dampened ? "sgd_dampened" : "sgd", numbers, o.lr);
}

Optimizer adam(const AdamOptions& options) { return adam_named("adam", options); }

Optimizer adamw(const AdamWOptions& o) {
  return adam_named("adamw", {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad});
}

Optimizer rms_prop(const RmsPropOptions& o) {
  graph::Attributes numbers{{"alpha", o.alpha}, {"eps", o.eps}, {"weight_decay", o.weight_decay}};
  std::string name = o.centered ? "rms_prop_centered" : "rms_prop";
  if (o.momentum != 0) {
    name += "_momentum";
    numbers.set("momentum", o.momentum);
  }
  return named(name, numbers, o.lr);
}

Optimizer adagrad(const AdagradOptions& o) {
  return named("adagrad",
               {{"lr_decay", o.lr_decay}, {"weight_decay", o.weight_decay}, {"eps", o.eps}}, o.lr);
}

Optimizer adadelta(const AdadeltaOptions& o) {
  return named("adadelta", {{"rho", o.rho}, {"eps", o.eps}, {"weight_decay", o.weight_decay}},
               o.lr);
}

Optimizer lion(const LionOptions& o) {
  return named("lion",
               {{"beta1", o.betas[0]}, {"beta2", o.betas[1]}, {"weight_decay", o.weight_decay}},
               o.lr);
}

Optimizer lamb(const LambOptions& o) {
  return named("lamb",
               {{"beta1", o.betas[0]},
                {"beta2", o.betas[1]},
                {"eps", o.eps},
                {"weight_decay", o.weight_decay}},
               o.lr);
}

std::string schedule(std::string_view name, const graph::Attributes& numbers) {
  return graph::rate_schedule(name, numbers);
}

}  // namespace arenite::optim
