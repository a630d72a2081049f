#include "src/train/compiled_step.hpp"

#include <arenite/error.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <utility>

namespace arenite::train {
namespace {

using graph::Builder;
using graph::StorageClass;
using graph::ValueId;

constexpr const char* batch_axis = "N";

/// Draws the batch from the data set, and lays it on what reads it.
class Gather {
 public:
  Gather(Builder& builder, const StepRequest& request) : builder_(builder), request_(request) {}

  /// images [N, H, W, C], labels [N]
  std::pair<ValueId, ValueId> add() {
    builder_.context = {.phase = Phase::forward, .lane = graph::Op::shared_lane, .where = "batch"};
    const std::int64_t m = request_.dataset;
    const Shape& image = request_.image;
    const ValueId images = constant(names::images, DType::uint8, {m, image[0], image[1], image[2]}),
                  labels = constant(names::labels, DType::uint8, {m}),
                  order = constant(names::order, DType::int32, {m}),
                  cursor = builder_.declare(names::cursor, DType::int64, {1}, StorageClass::input);
    const std::int64_t count = request_.batch;
    if (!gathers_on_gpu()) {
      const auto samples =
          builder_.add("batch_gather", {images, labels, order, cursor}, {{"count", count}});
      for (const ValueId id : samples) of_batch(id);
      return {samples.at(0), samples.at(1)};
    }
    // A GPU is sent no more than which samples to take.
    const ValueId first = constant(names::first, DType::int64, {1}),
                  chosen = builder_.add1("dynamic_slice", {order, cursor}, {{"rows", count}});
    of_batch(chosen);
    const auto samples =
        builder_.add("batch_gather", {images, labels, chosen, first}, {{"count", count}});
    return {samples.at(0), samples.at(1)};
  }

 private:
  bool gathers_on_gpu() const {
    return request_.resident && std::ranges::any_of(request_.how.spaces, [](const Space& space) {
             return space.device != DeviceKind::cpu;
           });
  }

  ValueId constant(const char* name, DType type, const Shape& shape) {
    return builder_.declare(name_in(request_.set, name), type, shape, StorageClass::constant);
  }

  /// With one copy for each task set: the next batch is chosen behind this step.
  void of_batch(ValueId id) {
    builder_.graph()[id].batch = batch_axis;
    builder_.graph().storage(builder_.graph()[id].storage).cls = StorageClass::input;
  }

  Builder& builder_;
  const StepRequest& request_;
};

void refuse_tfloat32_on_cpus(const compile::Options& how) {
  const bool uses_cpu = std::ranges::any_of(
      how.spaces, [](const Space& space) { return space.device == DeviceKind::cpu; });
  if (!uses_cpu || how.kernels.compute != runtime::Compute::tfloat32) return;
  fail({.found = "products in tfloat32 on the CPU",
        .expected = "float32 or bfloat16",
        .hint = "TF32 is what tensor cores of GPUs multiply"});
}

}  // namespace

graph::Graph step_graph(const nn::Layer& model, const nn::Loss& loss,
                        const optim::Optimizer& optimizer, const StepRequest& request) {
  graph::Graph graph;
  Builder builder(graph, operators());
  const auto [images, labels] = Gather(builder, request).add();
  builder.context.phase = request.training ? Phase::forward : Phase::evaluate;
  builder.context.where.clear();
  nn::ModelBuilder layers(builder);
  const nn::LossValues values = loss(layers, model(layers, images), labels, request.batch);
  if (const std::optional<float>& range = request.init_range) {
    for (const ValueId id : graph.declared(StorageClass::parameter)) {
      graph::FirstValue& first = graph[id].first;
      if (first.kind != graph::FirstValue::Kind::constant) first = graph::uniform(-*range, *range);
    }
  }

  builder.context.where = "statistics";
  const ValueId total =
      builder.declare(names::statistics, DType::float64, {2}, StorageClass::buffer);
  builder.add("accumulate", {total, values.statistics});
  graph.training = graph::Training{optimizer, values.value, graph.trainable()};
  return graph;
}

compile::Compiled compile_step(const nn::Layer& model, const nn::Loss& loss,
                               const optim::Optimizer& optimizer, const StepRequest& request,
                               plan::StateLayout* state) {
  refuse_tfloat32_on_cpus(request.how);
  const graph::Graph graph = step_graph(model, loss, optimizer, request);
  const compile::Entry entry{.name = request.name,
                             .train = request.training,
                             .averaged = !request.training && optimizer.averaging.has_value(),
                             .part = request.part};
  return state ? compile::compile(graph, entry, request.how, *state)
               : compile::lower(graph, entry, request.how);
}

}  // namespace arenite::train
