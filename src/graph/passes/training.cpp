#include <arenite/error.hpp>
#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/graph/passes/fused.hpp"
#include "src/graph/passes/shards.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace arenite::graph {
namespace {

/// What happens behind the gradients, in phase update.
class Updates {
 public:
  Updates(Builder& builder, const Training& training)
      : builder_(builder),
        training_(training),
        optimizer_(builder.table().at(training.optimizer)),
        rate_(declare(learning_rate_name, DType::float32)) {
    check_learning_rate(training.learning_rate);
    builder_.graph()[rate_].first = constant(training.learning_rate);
    for (const double limit : {training.clip_value, training.clip_norm}) {
      if (limit >= 0 && std::isfinite(limit)) continue;
      fail({.found = "gradients cut at " + to_string(AttributeValue(limit)),
            .expected = "a finite number above 0, or 0 for none"});
    }
    if (!optimizer_->each_step && training.schedule.empty()) return;
    count_steps();
    if (optimizer_->each_step) {
      each_step_ = formula(step_name, {step_},
                           {optimizer_->each_step(optimizer_->with_defaults(training.attributes))});
    }
    if (!training.schedule.empty()) rate_ = scheduled();
  }

  /// A gradient is complete: its parameter's update can follow, unless it depends on all of them.
  void add(ValueId parameter, ValueId gradient) {
    if (training_.clip_value > 0) gradient = cut(parameter, gradient);
    if (training_.clip_norm > 0) {
      waiting_.emplace_back(parameter, gradient);
    } else {
      update(parameter, gradient);
    }
  }

  /// Behind the last gradient.
  void finish() {
    if (waiting_.empty()) return;
    const ValueId factor = shortening();
    for (const auto& [parameter, gradient] : waiting_) {
      expr::Builder b;
      const auto g = b.operand(expr::Type::float32), by = b.operand(expr::Type::float32);
      update(parameter, formula(name_of(parameter), {gradient, factor}, {b.finish({g * by})})[0]);
    }
  }

 private:
  std::string name_of(ValueId id) const { return builder_.graph()[id].name; }

  std::vector<ValueId> op(const std::string& where, const std::string& name,
                          std::vector<ValueId> operands, const Attributes& attributes) {
    const OpContext saved = std::exchange(
        builder_.context, {.phase = Phase::update, .lane = Op::shared_lane, .where = where});
    auto results = builder_.add(name, std::move(operands), attributes);
    builder_.context = saved;
    return results;
  }

  /// A state of one number.
  ValueId declare(const char* name, DType type) {
    if (builder_.graph().find(StorageClass::optimizer_state, name)) {
      fail({.found = "an optimizer state named '" + std::string(name) + "'",
            .expected = "another name: training has a state of this one"});
    }
    return builder_.declare(name, type, {1}, StorageClass::optimizer_state);
  }

  /// By the operator that stands for any formula.
  std::vector<ValueId> formula(const std::string& where, std::vector<ValueId> operands,
                               const ElementFormula& made) {
    for (const auto& any : fused_operators<FormulaOf>(builder_.table())) {
      if (any.form->reduces == made.expression.reduces())
        return op(where, any.by->name, std::move(operands), any.form->attributes(made));
    }
    fail({.found = "no operator that does any formula", .expected = "`map` and `reduce`"});
  }

  /// The step's number is one more than that of those before.
  void count_steps() {
    const ValueId steps = declare(step_name, DType::int64);
    const ValueId one =
        op(step_name, "full", {},
           {{"shape", std::vector<std::int64_t>{1}}, {"value", 1.0}, {"type", "int64"}})[0];
    step_ = op(step_name, "accumulate", {steps, one}, {})[0];
  }

  ValueId scheduled() {
    expr::Builder b;
    const std::array step{b.cast(expr::Type::float64, b.operand(expr::Type::int64))};
    const auto rate = b.operand(expr::Type::float32);
    const expr::Expression schedule =
        expr::parse(training_.schedule, std::array{expr::Type::float64});
    if (schedule.results().size() > 1 || schedule.reduces()) {
      fail({.found = "the schedule { " + training_.schedule + " }",
            .expected = "a formula of one number, by which the learning rate is multiplied"});
    }
    const auto factor = b.insert(schedule, step);
    return formula(learning_rate_name, {step_, rate_},
                   {b.finish({b.cast(expr::Type::float32, factor.at(0)) * rate})})[0];
  }

  void update(ValueId parameter, ValueId gradient) {
    // A copy: declaring a value may move the graph's arrays.
    const Value updated = builder_.graph()[parameter];
    std::vector<ValueId> operands{parameter, gradient, rate_};
    for (std::size_t i = operands.size(); i < optimizer_->operands.size(); ++i) {
      const OperandSchema& state = optimizer_->operands[i];
      if (state.renews == Renews::nothing) break;
      operands.push_back(optimizer_->gives(state, training_.attributes)
                             ? builder_.declare(updated.name + "." + state.name, updated.type,
                                                updated.shape, StorageClass::optimizer_state)
                             : ValueId{});
    }
    operands.insert(operands.end(), each_step_.begin(), each_step_.end());
    op(updated.name, training_.optimizer, std::move(operands), training_.attributes);
  }

  ValueId cut(ValueId parameter, ValueId gradient) {
    expr::Builder b;
    const double most = training_.clip_value;
    const auto g = b.operand(expr::Type::float32);
    return formula(name_of(parameter), {gradient}, {b.finish({min(max(g, -most), most)})})[0];
  }

  /// As PyTorch's clip_grad_norm_: by what all gradients are multiplied.
  ValueId shortening() {
    std::vector<Term> squares;
    for (const auto& [parameter, gradient] : waiting_) {
      expr::Builder b;
      const auto g = b.operand(expr::Type::float32);
      const int rank = builder_.graph()[gradient].shape.rank();
      ElementFormula made{b.finish({rank > 0 ? sum(g * g) : g * g})};
      made.axes.resize(static_cast<std::size_t>(rank));
      std::iota(made.axes.begin(), made.axes.end(), 0);
      made.keeps_axes = false;
      squares.push_back({formula(name_of(parameter), {gradient}, made)[0]});
    }
    const OpContext saved = std::exchange(
        builder_.context, {.phase = Phase::update, .lane = Op::shared_lane, .where = "clip_norm"});
    const ValueId all = add_up(builder_, {}, squares);
    builder_.context = saved;
    expr::Builder b;
    const double most = training_.clip_norm;
    const auto length = sqrt(b.operand(expr::Type::float32));
    return formula("clip_norm", {all}, {b.finish({min(most / (length + 1e-6), 1)})})[0];
  }

  Builder& builder_;
  const Training& training_;
  const std::shared_ptr<const OperatorDefinition> optimizer_;
  ValueId rate_, step_;
  std::vector<ValueId> each_step_;
  std::vector<std::pair<ValueId, ValueId>> waiting_;  // parameters and their gradients
};

void keep_outputs(Builder& builder) {
  Graph& graph = builder.graph();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId output = graph.outputs[i];
    if (graph.root_storage(output).cls == StorageClass::parameter)
      graph.outputs[i] = builder.add1(copy_operator, {output});
  }
}

}  // namespace

void check_learning_rate(double rate) {
  if (rate >= 0 && std::isfinite(static_cast<float>(rate))) return;
  fail({.found = "a learning rate of " + to_string(AttributeValue(rate)),
        .expected = "a number of at least 0 that a float can hold"});
}

std::vector<ValueId> add_training(Graph& graph, const OperatorTable& table,
                                  const std::vector<ValueId>& losses, const BatchCut& cut) {
  const Training training = *std::exchange(graph.training, std::nullopt);
  Builder builder(graph, table);
  keep_outputs(builder);
  Updates updates(builder, training);
  const std::vector<ValueId> gradients = add_gradients(
      builder, losses, training.parameters,
      [&](std::size_t i, ValueId gradient) { updates.add(training.parameters[i], gradient); }, cut);
  updates.finish();
  std::vector<ValueId> unreached;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i]) unreached.push_back(training.parameters[i]);
  }
  return unreached;
}

}  // namespace arenite::graph
