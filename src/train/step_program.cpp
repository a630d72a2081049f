#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include "src/train/step_program.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace arenite::train {
namespace {

using graph::Builder;
using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

struct Forward {
  Graph graph;  ///< outputs: loss, statistics
  std::vector<nn::Parameter> parameters;
};

Forward build_forward(const nn::Layer& model, const nn::Loss& loss, const StepRequest& request) {
  Forward forward;
  Builder builder(forward.graph, operators());
  builder.context.phase = request.training ? Phase::forward : Phase::evaluate;
  const Shape& image = request.image;
  const ValueId x = builder.declare(
      "x", DType::float32, {request.batch, image[0], image[1], image[2]}, StorageClass::input);
  const ValueId y = builder.declare("y", DType::int32, {request.batch}, StorageClass::input);
  nn::ModelBuilder layers(builder);
  const ValueId logits = model(layers, x);
  const nn::LossValues values = loss(layers, logits, y, request.batch);
  forward.graph.outputs = {values.value, values.statistics};
  forward.parameters = layers.parameters();
  return forward;
}

/// Gathers each lane's samples from the data set; `x` and `y` of a lane come from one op.
class Gatherer {
 public:
  Gatherer(const StepRequest& request, const graph::Spaces& spaces)
      : request_(request), spaces_(spaces) {}

  ValueId operator()(Builder& builder, const graph::Value& input, const graph::LaneShare& share) {
    if (!images_) declare(builder);
    if (share.lane != lane_) {
      lane_ = share.lane;
      builder.context.where = "batch";
      gathered_ = request_.resident && spaces_.of_lane(share.lane).device != DeviceKind::cpu
                      ? gather_there(builder, share)
                      : gather_here(builder, share);
    }
    return gathered_.at(input.name == "x" ? 0 : 1);
  }

 private:
  /// By a CPU worker.
  std::vector<ValueId> gather_here(Builder& builder, const graph::LaneShare& share) const {
    const auto samples = builder.add("batch_gather", {images_, labels_, order_, cursor_},
                                     {{"begin", share.begin}, {"count", share.count}});
    for (ValueId id : samples) refill(builder, id);
    return samples;
  }

  /// By the GPU, which is sent no more than which samples to take.
  std::vector<ValueId> gather_there(Builder& builder, const graph::LaneShare& share) {
    if (!first_) {
      first_ = builder.declare(name_in(request_.set, names::first), DType::int64, {1},
                               StorageClass::constant);
    }
    const std::int64_t behind = request_.dataset - (request_.batch - share.begin - share.count);
    const ValueId from = builder.add1("slice", {order_}, {{"begin", share.begin}, {"end", behind}});
    const ValueId chosen = builder.add1("dynamic_slice", {from, cursor_}, {{"rows", share.count}});
    refill(builder, chosen);
    return builder.add("batch_gather", {images_, labels_, chosen, first_},
                       {{"count", share.count}});
  }

  /// One copy for each task set: the next batch is chosen behind this step.
  static void refill(Builder& builder, ValueId id) {
    builder.graph().storage(builder.graph()[id].storage).cls = StorageClass::input;
  }

  void declare(Builder& builder) {
    const std::int64_t m = request_.dataset;
    const Shape& image = request_.image;
    const auto constant = [&](const char* name, DType type, Shape shape) {
      return builder.declare(name_in(request_.set, name), type, shape, StorageClass::constant);
    };
    images_ = constant(names::images, DType::uint8, {m, image[0], image[1], image[2]});
    labels_ = constant(names::labels, DType::uint8, {m});
    order_ = constant(names::order, DType::int32, {m});
    cursor_ = builder.declare(names::cursor, DType::int64, {1}, StorageClass::input);
  }

  const StepRequest& request_;
  const graph::Spaces& spaces_;
  ValueId images_, labels_, order_, cursor_, first_;
  std::vector<ValueId> gathered_;
  int lane_ = graph::Op::shared_lane;
};

void add_statistics(Builder& builder, const std::vector<ValueId>& lanes, Phase phase) {
  builder.context = {.phase = phase, .lane = graph::Op::shared_lane, .where = "statistics"};
  const ValueId total =
      builder.declare(names::statistics, DType::float64, {2}, StorageClass::buffer);
  const ValueId step = lanes.size() == 1 ? lanes.front() : builder.add1("sum", lanes);
  builder.add("accumulate", {total, step});
}

void add_updates(Builder& builder, const std::vector<ValueId>& losses,
                 const std::vector<nn::Parameter>& parameters, const optim::Optimizer& optimizer) {
  const ValueId rate =
      builder.declare(names::learning_rate, DType::float32, {1}, StorageClass::buffer);
  std::vector<ValueId> wrt;
  wrt.reserve(parameters.size());
  for (const nn::Parameter& parameter : parameters)
    wrt.push_back(builder.graph().find(parameter.name));
  graph::add_gradients(builder, losses, wrt, [&](std::size_t index, ValueId gradient) {
    const graph::OpContext saved = std::exchange(
        builder.context,
        {.phase = Phase::update, .lane = graph::Op::shared_lane, .where = parameters[index].name});
    optimizer.append({.builder = builder,
                      .name = parameters[index].name,
                      .parameter = wrt[index],
                      .gradient = gradient,
                      .learning_rate = rate});
    builder.context = saved;
  });
}

double work_of(const StepProgram& program) {
  const auto& tasks = program.spec.schedule.tasks;
  return std::accumulate(tasks.begin(), tasks.end(), 0.0, [](double sum, const graph::Task& task) {
    return sum + (task.staging ? 0 : task.microseconds);
  });
}

StepProgram assemble(const nn::Layer& model, const nn::Loss& loss,
                     const optim::Optimizer& optimizer, const StepRequest& request, int lanes,
                     const graph::Spaces& spaces) {
  Forward forward = build_forward(model, loss, request);
  if (request.fuse) graph::fuse(forward.graph, operators());
  const auto shares = graph::lane_shares(request.batch, lanes);
  Gatherer gather(request, spaces);
  graph::LaneGraph split = graph::split_lanes(forward.graph, operators(), shares, std::ref(gather));

  Builder builder(split.graph, operators());
  std::vector<ValueId> losses, statistics;
  for (const auto& outputs : split.outputs)
    losses.push_back(outputs.at(0)), statistics.push_back(outputs.at(1));
  add_statistics(builder, statistics, request.training ? Phase::forward : Phase::evaluate);
  if (request.training) add_updates(builder, losses, forward.parameters, optimizer);
  // Nobody reads the lanes' losses: they are accumulated in `statistics`, and need no bytes that
  // last.
  split.graph.outputs.clear();

  if (request.fuse) graph::fuse(split.graph, operators());
  graph::merge_sums(split.graph, operators());
  if (spaces == graph::Spaces{}) {  // for caches that CPU workers do not share
    graph::split_features(split.graph, operators(), request.target);
    graph::split_rows(split.graph, operators(), request.target);
  }
  if (request.fuse && spaces.shared.device != DeviceKind::cpu)  // where launches count
    graph::group_updates(split.graph, operators());
  if (request.fuse) graph::fuse_updates(split.graph, operators());
  const auto selector =
      runtime::kernel_selector(kernels(), {.compute = request.compute, .choices = request.kernels});
  graph::place(split.graph, operators(), spaces, *selector);
  graph::select(split.graph, *selector);
  graph::in_place(split.graph);
  StepProgram program;
  program.spec.name = request.name;
  program.spec.schedule = graph::coarsen(split.graph, request.target);
  program.spec.target = request.target;
  program.spec.graph = std::move(split.graph);
  program.parameters = std::move(forward.parameters);
  program.lanes = static_cast<int>(shares.size());
  return program;
}

}  // namespace

StepProgram assemble_step(const nn::Layer& model, const nn::Loss& loss,
                          const optim::Optimizer& optimizer, const StepRequest& request) {
  const auto with = [&](int lanes, const graph::Spaces& spaces) {
    return assemble(model, loss, optimizer, request, lanes, spaces);
  };
  const bool uses_cpu = std::ranges::any_of(
      request.spaces, [](const Space& space) { return space.device == DeviceKind::cpu; });
  if (uses_cpu && request.compute == runtime::Compute::tfloat32) {
    fail({.found = "products in tfloat32 on the CPU",
          .expected = "float32 or bfloat16",
          .hint = "TF32 is what tensor cores of GPUs multiply"});
  }
  // By estimated work alone, so that the order of arithmetic never depends on a machine's load.
  if (request.spaces == std::vector{Space{}}) {
    StepProgram program = with(std::max(1, request.lanes), {});
    if (request.lanes != 0) return program;
    const int lanes = request.target.lanes(work_of(program));
    return lanes > 1 ? with(lanes, {}) : std::move(program);
  }
  const auto dealt = graph::deal_out(request.spaces, request.lanes, [&](const Space& space) {
    return work_of(with(1, {.shared = space, .lanes = {}}));
  });
  return with(static_cast<int>(dealt.lanes.size()), dealt);
}

StepProgram build_step(const nn::Layer& model, const nn::Loss& loss,
                       const optim::Optimizer& optimizer, const StepRequest& request,
                       plan::StateLayout& state) {
  StepProgram program = assemble_step(model, loss, optimizer, request);
  program.spec.plan = plan::plan_step(program.spec.graph, program.spec.schedule, state,
                                      {.layout = request.layout, .solve = {}});
  return program;
}

}  // namespace arenite::train
