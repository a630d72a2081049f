// A script's model beside its meaning, evaluation after evaluation.
#pragma once

#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/reference/evaluator.hpp"

namespace arenite::testing {

using graph::StorageClass;
using graph::ValueId;

/// A script's model and its meaning, fed the same numbers.
class Pair {
 public:
  Pair(const std::string& script, std::uint32_t seed, const ModelOptions& options = {})
      : graph_(graph::parse(script, operators())), random_(seed) {
    reference_.emplace(graph_);
    std::vector<NamedBytes> constants;
    for (const ValueId id : graph_.declared(StorageClass::constant)) constants.push_back(draw(id));
    model_.emplace(session_, graph_, constants, options);
  }

  Model& model() { return *model_; }

  /// Sets an int64 input of the next evaluation.
  void set(const std::string& name, std::int64_t value) { integers_[name] = {value}; }

  /// Evaluates both on new random inputs; how far the outputs are apart, as a part of the largest.
  double difference() {
    std::vector<NamedBytes> inputs;
    for (const ValueId id : graph_.declared(StorageClass::input)) inputs.push_back(draw(id));
    std::vector<std::vector<float>> outputs;
    for (const Port& port : model_->outputs()) {
      outputs.emplace_back(static_cast<std::size_t>(port.shape.elements()));
    }
    std::vector<void*> places;
    for (auto& output : outputs) places.push_back(output.data());
    model_->evaluate(inputs, places);
    reference_->run();
    double worst = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const reference::Tensor& expected = (*reference_)[graph_.outputs[i]];
      double largest = 0, apart = 0;
      for (std::size_t k = 0; k < outputs[i].size(); ++k) {
        const double value = expected.data[k];
        largest = std::max(largest, std::fabs(value));
        const double off = std::fabs(static_cast<double>(outputs[i][k]) - value);
        apart = std::isnan(off) ? 1e9 : std::max(apart, off);
      }
      worst = std::max(worst, apart / std::max(largest, 1e-30));
    }
    reference_->keep();
    return worst;
  }

 private:
  NamedBytes draw(ValueId id) {
    const graph::Value& value = graph_[id];
    reference::Tensor& tensor = (*reference_)[value.name];
    if (value.type == DType::int64) {
      const std::vector<std::int64_t>& given = integers_[value.name];
      std::copy(given.begin(), given.end(), tensor.data.begin());
      return {value.name, given.data(), std::nullopt};
    }
    std::vector<float>& floats = floats_[value.name];
    floats.resize(tensor.size());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      floats[i] = uniform(random_);
      tensor.data[i] = static_cast<double>(floats[i]);
    }
    return {value.name, floats.data(), std::nullopt};
  }

  runtime::Session session_{{.workers = 1}};
  graph::Graph graph_;
  std::mt19937 random_;
  std::map<std::string, std::vector<float>> floats_;
  std::map<std::string, std::vector<std::int64_t>> integers_;
  std::optional<reference::Evaluator> reference_;
  std::optional<Model> model_;
};

}  // namespace arenite::testing
