#include <arenite/train/script.hpp>

#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include "src/base/refuse.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/values.hpp"
#include "src/train/objective.hpp"

namespace arenite::train {
namespace {

using graph::Graph;
using graph::StorageClass;
using graph::ValueId;

/// The size of a batch, which all inputs begin with.
struct Batch {
  std::string name;  ///< empty: it is known
  std::int64_t most = 0;
};

Batch batch_of(const Graph& graph, const std::string& where) {
  const std::vector<graph::RunTimeSize> open = graph::run_time_sizes(graph);
  const std::vector<ValueId> inputs = graph.declared(StorageClass::input);
  const std::string expected = "inputs of a batch, as InputTensor(x, float32, [N<=64, 784])";
  if (inputs.empty()) refuse("a script without inputs", expected, where);
  if (open.size() > 1) {
    refuse("sizes '" + open[0].name + "' and '" + open[1].name + "' left open", "one, of the batch",
           where);
  }
  Batch batch;
  if (!open.empty()) batch = {open[0].name, open[0].bound};
  for (const ValueId id : inputs) {
    const graph::Value& input = graph[id];
    const std::string& name = input.size_names.empty() ? std::string() : input.size_names[0];
    if (batch.most == 0 && input.shape.rank() > 0) batch.most = input.shape[0];
    if (input.shape.rank() > 0 && input.shape[0] == batch.most && name == batch.name) continue;
    refuse("input '" + input.name + "' " + to_string(input.shape) + " beside " +
               (batch.name.empty() ? "a batch of " + std::to_string(batch.most)
                                   : "an open batch '" + batch.name + "'"),
           expected, where);
  }
  return batch;
}

/// Lets the batch's size be called as in all networks that are trained.
void rename(Graph& graph, const std::string& from) {
  const auto names = [&](std::vector<std::string> all) {
    std::ranges::replace(all, from, std::string(batch_size));
    return all;
  };
  for (std::size_t i = 0; i < graph.value_count(); ++i)
    graph[ValueId(i)].size_names = names(std::move(graph[ValueId(i)].size_names));
  const auto rename_in = [&](graph::Attributes& attributes) {
    const auto named = attributes.size_names();  // a copy: they change
    for (const auto& [name, sizes] : named)
      attributes.set(name, graph::AttributeValue(*attributes.find(name)), names(sizes));
  };
  for (std::size_t i = 0; i < graph.op_count(); ++i) rename_in(graph[graph::OpId(i)].attributes);
  rename_in(graph.training->attributes);
}

void check_script(const Graph& graph, const std::string& where) {
  if (!graph.training) refuse("a script that does not train", "a train statement", where);
  if (graph.training->accumulate > 1) {
    refuse("accumulate=" + std::to_string(graph.training->accumulate) + " of a train statement",
           "1: whoever trains says how many batches make a step", where);
  }
  const std::vector<ValueId> constants = graph.declared(StorageClass::constant);
  if (constants.empty()) return;
  refuse("constant '" + graph[constants[0]].name + "', whose bytes nobody has", "none", where,
         "a parameter that is frozen has a first value, and keeps it");
}

bool is_sum(const Graph& graph, ValueId id) {
  return graph[id].type == DType::float64 && graph[id].shape == Shape{1};
}

bool is_metric(const Graph& graph, const graph::Entry& entry) {
  return entry.name != predict_name && entry.name != predict_current_name &&
         !entry.outputs.empty() && entry.outputs.size() <= 2 &&
         std::ranges::all_of(entry.outputs, [&](ValueId id) { return is_sum(graph, id); });
}

/// Whoever trains runs them as evaluations, and by the means that training keeps where it does.
void check_entries(const Graph& graph, const std::string& where) {
  for (const graph::Entry& entry : graph.entries) {
    const bool predicts = entry.name == predict_name;
    if (predicts && entry.outputs.size() != 1) {
      refuse("an entry predict of " + std::to_string(entry.outputs.size()) + " values", "one",
             where);
    }
    if (!predicts && !is_metric(graph, entry)) continue;
    const bool averages = predicts && graph.training->averaging.has_value();
    if (entry.mode == graph::Mode::evaluate && entry.keeps.empty() && (!entry.averaged || averages))
      continue;
    refuse("entry '" + entry.name + "' with a mode, means or values that it keeps",
           "predictions and metrics of an evaluation", where);
  }
}

/// All of `graph` among what the builder has.
Objective appended(const Graph& graph, nn::ModelBuilder& model) {
  graph::Builder& builder = model.graph();
  const graph::Training& training = *graph.training;
  std::vector<ValueId> map(graph.value_count());
  for (const ValueId id : graph::declared_values(graph)) {
    const ValueId copy = map[id.index] = graph::copy_declared(graph, id, builder);
    if (graph.root_storage(id).cls == StorageClass::parameter &&
        std::ranges::find(training.parameters, id) == training.parameters.end())
      builder.graph()[copy].frozen = true;
  }
  for (const graph::OpId id : graph[Graph::body].ops)
    graph::copy_op(graph, id, graph[id].lane, map, builder);
  Objective objective{.loss = map[training.loss.index]};
  for (const graph::Entry& entry : graph.entries) {
    if (entry.name == predict_name) {
      objective.predictions = map[entry.outputs[0].index];
    } else if (is_metric(graph, entry)) {
      objective.metrics.push_back({.name = entry.name, .sums = map[entry.outputs[0].index]});
      if (entry.outputs.size() == 2) objective.metrics.back().counts = map[entry.outputs[1].index];
    }
  }
  return objective;
}

}  // namespace

Script read_script(std::string_view text, std::string_view filename) {
  const std::string where(filename);
  Graph graph = graph::parse(text, operators(), filename);
  check_script(graph, where);
  check_entries(graph, where);
  const Batch batch = batch_of(graph, where);
  if (!batch.name.empty()) rename(graph, batch.name);
  Script script{.build = {},
                .optimizer = *graph.training,
                .most = batch.most,
                .is_known = batch.name.empty()};
  script.build = [graph = std::make_shared<const Graph>(std::move(graph)), batch, where](
                     nn::ModelBuilder& model, std::int64_t samples) {
    const bool is_known = batch.name.empty();
    if (is_known ? samples != batch.most : samples > batch.most) {
      refuse("a step on " + std::to_string(samples) + " samples",
             (is_known ? "" : "at most ") + std::to_string(batch.most), where,
             "inputs [N<=" + std::to_string(std::max(samples, batch.most)) +
                 ", …] take any number up to that");
    }
    return appended(is_known ? *graph : graph::at_bounds(*graph, {{batch_size, samples}}), model);
  };
  return script;
}

std::string script_of(const Network& network) {
  // Declarations first, as `appended` has them: a script of a script's network is the same text.
  const auto copied = [](graph::OpId, std::vector<ValueId>&, graph::Builder&) { return false; };
  Graph graph = graph::rebuild(network.graph, operators(), copied);
  graph::Builder builder(graph, operators());
  const auto element = [&](std::size_t output, std::size_t i) {
    const ValueId sums = graph.outputs.at(output);
    const auto at = static_cast<std::int64_t>(i);
    if (graph[sums].shape[0] == 1) return sums;
    return builder.add1("slice", {sums}, {{"begin", at}, {"end", at + 1}});
  };
  for (const OutputMetric& metric : network.metrics) {
    builder.context = {.where = metric.name};
    graph::Entry entry{.name = metric.name, .outputs = {element(metric.output, metric.element)}};
    if (metric.count_output) {
      entry.outputs.push_back(element(*metric.count_output, metric.count_element));
    } else if (metric.each != 1) {
      const std::string share =
          "yield $1 / " + graph::to_string(graph::AttributeValue(metric.each));
      entry.outputs[0] = builder.add1("map", {entry.outputs[0]}, {{"expression", share}});
    }
    graph.entries.push_back(std::move(entry));
  }
  graph.outputs.clear();
  return graph::print(graph);
}

Script read_scripts(std::function<std::string(std::int64_t)> text_for, std::int64_t most) {
  const auto at = [text_for = std::move(text_for)](std::int64_t samples) {
    return read_script(text_for(samples), "<script for " + std::to_string(samples) + ">");
  };
  optim::Optimizer optimizer = at(most).optimizer;
  return {.build = [at](nn::ModelBuilder& model,
                        std::int64_t samples) { return at(samples).build(model, samples); },
          .optimizer = std::move(optimizer),
          .most = most,
          .is_known = false};
}

}  // namespace arenite::train
