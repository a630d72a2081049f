#include "src/train/objective.hpp"

#include <arenite/graph/entries.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <utility>

#include "src/base/refuse.hpp"

namespace arenite::train {
namespace {

using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

/// The batch's loss times its samples.
Metric mean_loss(nn::ModelBuilder& model, ValueId loss, std::int64_t batch) {
  model.graph().context.where = "loss";
  const ValueId samples = model.elements(batch);
  return {.name = "loss",
          .sums = model.graph().add1("map", {loss, samples},
                                     {{"expression", std::string("yield float64($1) * $2")}})};
}

void check_loss(const Graph& graph, ValueId loss) {
  if (!loss) refuse("an objective without a loss", "a float32 [1]");
  const graph::Value& value = graph[loss];
  if (value.type == DType::float32 && value.shape == Shape{1}) return;
  refuse("a loss " + std::string(to_string(value.type)) + " " + to_string(value.shape),
         "float32 [1], the mean over the batch");
}

void check_inputs(const Graph& graph, std::int64_t batch) {
  const std::vector<ValueId> inputs = graph.declared(StorageClass::input);
  if (inputs.empty()) refuse("an objective without inputs", "inputs [batch, …]");
  for (const ValueId id : inputs) {
    const graph::Value& value = graph[id];
    if (value.name == "cursor" || value.name == "order" || value.name == "first")
      refuse("an input named '" + value.name + "'", "another name: sweeps have one of that");
    if (value.shape.rank() > 0 && value.shape[0] == batch) continue;
    refuse("input '" + value.name + "' " + to_string(value.shape) + " of a batch of " +
               std::to_string(batch),
           "[" + std::to_string(batch) + ", …], a row for each sample");
  }
}

/// The number of the output that a metric reads, which is one from now on.
std::size_t output_of(Graph& graph, ValueId sums, std::size_t element, const std::string& metric) {
  const std::string name = "metric '" + metric + "'";
  if (!sums) refuse(name + " without sums", "a float64 [k]");
  const graph::Value& value = graph[sums];
  if (value.type != DType::float64 || value.shape.rank() != 1) {
    refuse(name + " of sums " + std::string(to_string(value.type)) + " " + to_string(value.shape),
           "float64 [k]");
  }
  if (element >= static_cast<std::size_t>(value.shape[0])) {
    refuse(name + " of element " + std::to_string(element) + " of sums " + to_string(value.shape),
           "one that is there");
  }
  const auto known = std::ranges::find(graph.outputs, sums);
  if (known != graph.outputs.end()) return static_cast<std::size_t>(known - graph.outputs.begin());
  // What adds it up in a sweep is a buffer of its name.
  const auto is_taken = [&](const std::string& one) {
    return graph.find(StorageClass::buffer, one) ||
           std::ranges::any_of(graph.outputs, [&](ValueId id) { return graph[id].name == one; });
  };
  while (graph[sums].name.empty() || is_taken(graph[sums].name)) graph[sums].name += "." + metric;
  graph.outputs.push_back(sums);
  return graph.outputs.size() - 1;
}

}  // namespace

void expect_same(const std::vector<OutputMetric>& metrics, const std::vector<OutputMetric>& others,
                 std::int64_t batch) {
  if (metrics == others) return;
  const auto names = [](const std::vector<OutputMetric>& all) {
    std::string text;
    for (const OutputMetric& metric : all) text += (text.empty() ? "" : ", ") + metric.name;
    return text;
  };
  refuse("metrics " + names(others) + " of a batch of " + std::to_string(batch),
         "the same as of a whole batch: " + names(metrics));
}

Build classify(nn::Layer model, Shape image, nn::Loss loss) {
  if (image.rank() != 3) refuse("images of shape " + to_string(image), "[H, W, C]");
  return [model = std::move(model), image, loss = std::move(loss)](nn::ModelBuilder& builder,
                                                                   std::int64_t batch) {
    const ValueId images = builder.input("images", {batch, image[0], image[1], image[2]}),
                  labels = builder.input("labels", {batch}, DType::int32),
                  logits = model(builder, images);
    const nn::LossValues values = loss(builder, logits, labels, batch);
    graph::Graph& graph = builder.graph().graph();
    graph::Value& statistics = graph[values.statistics];
    statistics.name = "statistics";
    return Objective{.loss = values.value,
                     .metrics = {{.name = "loss", .sums = values.statistics},
                                 {.name = "accuracy", .sums = values.statistics, .element = 1}},
                     .predictions = logits};
  };
}

Network network_of(const Build& build, const optim::Optimizer& optimizer,
                   const NetworkOptions& options) {
  Network network;
  Graph& graph = network.graph;
  graph::Builder builder(graph, operators());
  builder.context.phase = options.training ? Phase::forward : Phase::evaluate;
  nn::ModelBuilder layers(builder, graph::RunTimeSize{batch_size, options.batch});
  Objective objective = build(layers, options.batch);
  check_loss(graph, objective.loss);
  check_inputs(graph, options.batch);
  if (std::ranges::find(objective.metrics, "loss", &Metric::name) == objective.metrics.end()) {
    objective.metrics.insert(objective.metrics.begin(),
                             mean_loss(layers, objective.loss, options.batch));
  }
  if (objective.metrics.size() > most_metrics) {
    refuse(std::to_string(objective.metrics.size()) + " metrics",
           "at most " + std::to_string(most_metrics) + ", the loss among them");
  }
  for (const Metric& metric : objective.metrics) {
    if (std::ranges::count(objective.metrics, metric.name, &Metric::name) > 1)
      refuse("a second metric '" + metric.name + "'", "a name of its own for each");
    if (metric.name == predict_name || metric.name == predict_current_name)
      refuse("a metric named '" + metric.name + "'", "another name");
    graph::check_entry_name(graph, metric.name);
    OutputMetric place{.name = metric.name,
                       .output = output_of(graph, metric.sums, metric.element, metric.name),
                       .element = metric.element,
                       .count_element = metric.count_element,
                       .each = metric.each};
    if (metric.counts)
      place.count_output = output_of(graph, metric.counts, metric.count_element, metric.name);
    network.metrics.push_back(std::move(place));
  }
  if (const std::optional<float>& range = options.init_range) {
    for (const ValueId id : graph.declared(StorageClass::parameter)) {
      graph::FirstValue& first = graph[id].first;
      if (first.kind != graph::FirstValue::Kind::constant) first = graph::uniform(-*range, *range);
    }
  }
  for (const ValueId id : graph.declared(StorageClass::input))
    graph::name_size(graph, id, 0, batch_size);
  if (objective.predictions) {
    const Shape& shape = graph[objective.predictions].shape;
    if (shape.rank() == 0 || shape[0] != options.batch || shape.elements() == 0) {
      refuse("predictions " + to_string(shape) + " of a batch of " + std::to_string(options.batch),
             "[" + std::to_string(options.batch) + ", …], a row for each sample");
    }
    const bool averages = optimizer.averaging.has_value();
    graph.entries.push_back(
        {.name = predict_name, .outputs = {objective.predictions}, .averaged = averages});
    if (averages)
      graph.entries.push_back({.name = predict_current_name, .outputs = {objective.predictions}});
  }
  graph.training = graph::Training{optimizer, objective.loss, graph.trainable()};
  return network;
}

}  // namespace arenite::train
