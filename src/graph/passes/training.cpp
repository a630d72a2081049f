#include <arenite/error.hpp>
#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>

#include "src/base/sum_tree.hpp"
#include "src/graph/passes/averages.hpp"
#include "src/graph/passes/fused.hpp"
#include "src/graph/passes/groups.hpp"
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
  Updates(Builder& builder, const Training& training, const std::vector<ValueId>& losses,
          const BatchOfUpdate& part)
      : builder_(builder),
        training_(training),
        part_(part),
        groups_(builder.graph(), training),
        optimizer_(training.optimizer),
        rate_(declare(learning_rate_name, DType::float32, StorageClass::buffer)) {
    check_learning_rate(training.learning_rate);
    builder_.graph()[rate_].first = constant(training.learning_rate);
    for (const double limit : {training.clip_value, training.clip_norm}) {
      if (limit >= 0 && std::isfinite(limit)) continue;
      fail({.found = "gradients cut at " + to_string(AttributeValue(limit)),
            .expected = "a finite number above 0, or 0 for none"});
    }
    if (training.check_loss) rate_ = checked(losses);
    if (part_.batches == 0) return;
    if (optimizer_->each_step || !training.schedule.empty() || training.averaging) count_steps();
    if (!training.schedule.empty()) rate_ = scheduled();
    if (training.averaging) {
      check_averaging(*training.averaging);
      kept_ = formula("average", {step_}, {share_kept(*training.averaging)})[0];
    }
  }

  /// A gradient is complete: its parameter's update can follow, unless it depends on all of them.
  void add(ValueId parameter, ValueId gradient) {
    ValueId place;  // of the sum that is complete with this batch
    for (int i = 1; i <= part_.added; ++i) {
      place = waiting_sum(parameter, part_.waiting - i);
      gradient = op(name_of(parameter), "sum", {place, gradient}, {})[0];
    }
    if (part_.batches == 0) {
      if (!place) place = waiting_sum(parameter, part_.waiting);
      // As updates do, it waits for a loss that is finite.
      op(name_of(parameter), "assign", {place, gradient, rate_}, {});
      return;
    }
    if (part_.batches > 1) gradient = mean(parameter, gradient);
    if (training_.clip_value > 0) gradient = cut(parameter, gradient);
    if (training_.clip_norm > 0) {
      waiting_.emplace_back(parameter, gradient);
    } else {
      update(parameter, gradient);
    }
  }

  /// Behind the last gradient. `unreached` stay as they are.
  void finish(const std::vector<ValueId>& unreached) {
    if (training_.averaging && part_.batches > 0) {
      for (const ValueId parameter : unreached) average(parameter, parameter);
    }
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

  std::vector<ValueId> op(const OpContext& context,
                          std::shared_ptr<const OperatorDefinition> definition,
                          std::vector<ValueId> operands, const Attributes& attributes) {
    const OpContext saved = std::exchange(builder_.context, context);
    auto results = builder_.add(std::move(definition), std::move(operands), attributes);
    builder_.context = saved;
    return results;
  }
  std::vector<ValueId> op(const std::string& where,
                          std::shared_ptr<const OperatorDefinition> definition,
                          std::vector<ValueId> operands, const Attributes& attributes) {
    return op({.phase = Phase::update, .lane = Op::shared_lane, .where = where},
              std::move(definition), std::move(operands), attributes);
  }
  std::vector<ValueId> op(const std::string& where, const char* name, std::vector<ValueId> operands,
                          const Attributes& attributes) {
    return op(where, builder_.table().at(name), std::move(operands), attributes);
  }

  /// The learning rate, once all losses are known to be finite: each is looked at as soon as it is
  /// made, so that it need not be kept until the others are there.
  ValueId checked(const std::vector<ValueId>& losses) {
    std::vector<ValueId> operands{rate_};
    if (losses.size() == 1) {
      operands.push_back(losses[0]);
      return check(std::move(operands), losses[0]);
    }
    for (const ValueId loss : losses) operands.push_back(check({{}, loss}, loss));
    return check(std::move(operands), {});
  }

  /// In the lane of what makes the loss; none: where there is time. In phase update it would hold
  /// up all updates until the last gradient is there: steps in bfloat16 would need up to 46 % fewer
  /// bytes, and take 10 % longer.
  ValueId check(std::vector<ValueId> operands, ValueId loss) {
    const OpId maker = loss ? builder_.graph()[loss].producer : OpId{};
    const int lane = maker ? builder_.graph()[maker].lane : Op::shared_lane;
    return op({.phase = Phase::forward, .lane = lane, .where = "loss"},
              builder_.table().at("check_loss"), std::move(operands), {})[0];
  }

  /// One number that persists.
  ValueId declare(const char* name, DType type, StorageClass cls) {
    if (builder_.graph().find(cls, name)) {
      fail({.found = "a value of class " + std::string(to_string(cls)) + " named '" + name + "'",
            .expected = "another name: training has one of this name"});
    }
    return builder_.declare(name, type, {1}, cls);
  }

  /// By the operator that stands for any formula.
  std::vector<ValueId> formula(const std::string& where, std::vector<ValueId> operands,
                               const ElementFormula& made) {
    for (const auto& any : fused_operators<FormulaOf>(builder_.table())) {
      if (any.form->reduces == made.expression.reduces())
        return op(where, any.by, std::move(operands), any.form->attributes(made));
    }
    fail({.found = "no operator that does any formula", .expected = "`map` and `reduce`"});
  }

  /// The step's number is one more than that of those before.
  void count_steps() {
    const ValueId steps = declare(step_name, DType::int64, StorageClass::optimizer_state);
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

  /// What the updates of some attributes ask for in each step.
  const std::vector<ValueId>& each_step(const Attributes& attributes) {
    if (!optimizer_->each_step) return nothing_;
    const Attributes all = optimizer_->with_defaults(attributes);
    const auto known = std::ranges::find(each_step_, all, &EachStep::attributes);
    if (known != each_step_.end()) return known->values;
    each_step_.push_back({all, formula(step_name, {step_}, {optimizer_->each_step(all)})});
    return each_step_.back().values;
  }

  /// The learning rate times this.
  ValueId rate_times(double factor) {
    if (factor == 1) return rate_;
    const auto known = std::ranges::find(rates_, factor, &std::pair<double, ValueId>::first);
    if (known != rates_.end()) return known->second;
    expr::Builder b;
    const auto rate = b.operand(expr::Type::float32);
    rates_.emplace_back(factor,
                        formula(learning_rate_name, {rate_}, {b.finish({rate * factor})})[0]);
    return rates_.back().second;
  }

  void update(ValueId parameter, ValueId gradient) {
    // A copy: declaring a value may move the graph's arrays.
    const Value updated = builder_.graph()[parameter];
    const auto& [rate, attributes] = groups_.of(updated);
    std::vector<ValueId> operands{parameter, gradient, rate_times(rate)};
    for (std::size_t i = operands.size(); i < optimizer_->operands.size(); ++i) {
      const OperandSchema& state = optimizer_->operands[i];
      if (state.renews == Renews::nothing) break;
      operands.push_back(optimizer_->gives(state, attributes)
                             ? builder_.declare(updated.name + "." + state.name, updated.type,
                                                updated.shape, StorageClass::optimizer_state)
                             : ValueId{});
    }
    const std::vector<ValueId>& given = each_step(attributes);
    operands.insert(operands.end(), given.begin(), given.end());
    const ValueId now = op(updated.name, optimizer_, std::move(operands), attributes)[0];
    if (training_.averaging) average(parameter, now);
  }

  void average(ValueId parameter, ValueId now) {
    const Value value = builder_.graph()[parameter];
    const ValueId mean = builder_.declare(average_name(value.name), value.type, value.shape,
                                          StorageClass::optimizer_state);
    op(value.name, "average", {mean, now, kept_}, {});
  }

  /// A sum of earlier batches' gradients, the first of those that wait being 0.
  ValueId waiting_sum(ValueId parameter, int number) {
    const Value value = builder_.graph()[parameter];
    return builder_.declare(waiting_name(value.name, number), value.type, value.shape,
                            StorageClass::optimizer_state);
  }

  /// Of all batches, of their sum.
  ValueId mean(ValueId parameter, ValueId sum) {
    expr::Builder b;
    const auto all = b.operand(expr::Type::float32);
    return formula(name_of(parameter), {sum}, {b.finish({all * (1.0 / part_.batches)})})[0];
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
  const BatchOfUpdate part_;
  const Groups groups_;
  const std::shared_ptr<const OperatorDefinition> optimizer_;
  struct EachStep {
    Attributes attributes;
    std::vector<ValueId> values;
  };

  ValueId rate_, step_, kept_;
  std::vector<EachStep> each_step_;
  const std::vector<ValueId> nothing_;
  std::vector<std::pair<double, ValueId>> rates_;     // of the learning rate, times what
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

void check_accumulated(std::int64_t batches) {
  if (batches >= 1 && batches <= 64) return;
  fail({.found = std::to_string(batches) + " batches an update", .expected = "1 to 64"});
}

std::string waiting_name(const std::string& parameter, int number) {
  return parameter + ".gradient" + std::to_string(number);
}

BatchOfUpdate batch_of_update(int all, int before, bool is_last) {
  BatchOfUpdate part{.batches = is_last ? before + 1 : 0};
  const auto place = static_cast<std::size_t>(before);
  for (std::size_t from = 0, to = static_cast<std::size_t>(all); to - from > 1;) {
    const std::size_t middle = middle_of(from, to);
    const bool behind = place >= middle;  // what is before the middle waits, complete
    (behind ? from : to) = middle;
    part.waiting += behind ? 1 : 0;
    part.added = behind ? part.added + 1 : 0;
  }
  if (is_last) part.added = part.waiting;
  return part;
}

std::vector<ValueId> add_training(Graph& graph, const OperatorTable& table,
                                  const std::vector<ValueId>& losses, const BatchCut& cut,
                                  const BatchOfUpdate& part) {
  const Training training = *std::exchange(graph.training, std::nullopt);
  if (!training.optimizer || !training.optimizer->is_optimizer()) {
    fail({.found = training.optimizer
                       ? "training by '" + training.optimizer->name + "', which is no optimizer"
                       : "training without an optimizer",
          .expected = "one, as operators().at(\"sgd\")"});
  }
  Builder builder(graph, table);
  keep_outputs(builder);
  check_accumulated(training.accumulate);
  Updates updates(builder, training, losses, part);
  const std::vector<ValueId> gradients = add_gradients(
      builder, losses, training.parameters,
      [&](std::size_t i, ValueId gradient) { updates.add(training.parameters[i], gradient); }, cut);
  std::vector<ValueId> unreached;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i]) unreached.push_back(training.parameters[i]);
  }
  updates.finish(unreached);
  return unreached;
}

}  // namespace arenite::graph
