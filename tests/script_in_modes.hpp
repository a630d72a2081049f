// A script as training and evaluations run it, with numbers by name.
#pragma once

#include <arenite/arenite.hpp>
#include <arenite/graph/text.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace arenite::testing {

using Floats = std::vector<float>;

inline Floats random_floats(std::size_t count, unsigned seed, double mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, 1);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(normal(random));
  return values;
}

class ScriptModel {
 public:
  ScriptModel(runtime::Session& session, const std::string& script,
              const std::map<std::string, Floats>& first, ModelOptions options = {})
      : model_(session, graph::parse(script, operators()), {}, options) {
    for (const auto& [name, values] : first) state(name, values);
  }

  void state(const std::string& name, const Floats& values) {
    const auto bytes = std::as_bytes(std::span(values));
    std::ranges::copy(bytes, model_.state(name).begin());
  }
  Floats state(const std::string& name) {
    const auto bytes = model_.state(name);
    Floats values(bytes.size() / sizeof(float));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(values)).begin());
    return values;
  }

  std::vector<Floats> train(const std::map<std::string, Floats>& inputs) {
    return run(inputs, true);
  }
  std::vector<Floats> evaluate(const std::map<std::string, Floats>& inputs) {
    return run(inputs, false);
  }
  Model& model() { return model_; }

 private:
  std::vector<Floats> run(const std::map<std::string, Floats>& inputs, bool training) {
    std::vector<NamedBytes> given;
    for (const auto& [name, values] : inputs)
      given.push_back({.name = name, .data = values.data()});
    std::vector<Floats> outputs;
    for (const Port& port : model_.outputs())
      outputs.emplace_back(static_cast<std::size_t>(port.shape.elements()));
    std::vector<void*> places;
    for (Floats& output : outputs) places.push_back(output.data());
    training ? model_.train_step(given, places) : model_.evaluate(given, places);
    return outputs;
  }

  Model model_;
};

}  // namespace arenite::testing
