#include <arenite/error.hpp>
#include <arenite/graph/operator.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/spaces.hpp>

#include <optional>
#include <utility>

namespace arenite::graph {
namespace {

/// Appends one parameter's update; an optimizer's states begin here.
void add_update(Builder& builder, const Training& training, ValueId parameter, ValueId gradient,
                ValueId rate) {
  // A copy: declaring a value may move the graph's arrays.
  const Value updated = builder.graph()[parameter];
  const OpContext saved = std::exchange(
      builder.context, {.phase = Phase::update, .lane = Op::shared_lane, .where = updated.name});
  std::vector<ValueId> operands{parameter, gradient, rate};
  const auto optimizer = builder.table().at(training.optimizer);
  for (std::size_t i = operands.size(); i < optimizer->operands.size(); ++i) {
    const OperandSchema& state = optimizer->operands[i];
    operands.push_back(optimizer->gives(state, training.attributes)
                           ? builder.declare(updated.name + "." + state.name, updated.type,
                                             updated.shape, StorageClass::optimizer_state)
                           : ValueId{});
  }
  builder.add(training.optimizer, std::move(operands), training.attributes);
  builder.context = saved;
}

void keep_outputs(Builder& builder) {
  Graph& graph = builder.graph();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId output = graph.outputs[i];
    if (graph.root_storage(output).cls == StorageClass::parameter)
      graph.outputs[i] = builder.add1(copy_operator, {output});
  }
}

}  // namespace

std::vector<ValueId> add_training(Graph& graph, const OperatorTable& table,
                                  const std::vector<ValueId>& losses, const BatchCut& cut) {
  const Training training = *std::exchange(graph.training, std::nullopt);
  Builder builder(graph, table);
  keep_outputs(builder);
  const ValueId rate =
      builder.declare(learning_rate_name, DType::float32, {1}, StorageClass::buffer);
  const std::vector<ValueId> gradients = add_gradients(
      builder, losses, training.parameters,
      [&](std::size_t i, ValueId gradient) {
        add_update(builder, training, training.parameters[i], gradient, rate);
      },
      cut);
  std::vector<ValueId> unreached;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i]) unreached.push_back(training.parameters[i]);
  }
  return unreached;
}

}  // namespace arenite::graph
