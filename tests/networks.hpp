// Every network of the framework, for tests that go through all of them: a new one is covered as
// soon as nn::models() has it.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/nn/nn.hpp>

#include "src/train/compiled_step.hpp"

#include <cstdlib>
#include <string>
#include <vector>

namespace arenite::testing {

/// Plain kernels under sanitizers would take minutes for the others.
inline std::vector<std::string> networks() {
  if (ARENITE_PLAIN_KERNELS) return {"mlp", "cnn1"};
  std::vector<std::string> names;
  for (const nn::NamedModel& model : nn::models()) names.push_back(model.name);
  return names;
}

/// "vgg_small": what gtest takes for the name of a case.
inline std::string case_name(std::string network) {
  for (char& c : network) c = c == '-' ? '_' : c;
  return network;
}

/// A drawn set of the kind of images that a network is meant for.
inline data::ImageData drawn_images(const std::string& network, const data::SyntheticOptions& how) {
  return nn::model(network).dataset == "synthetic-color" ? data::synthetic_color(how)
                                                         : data::synthetic(how);
}

/// Whether thousands of steps would take a test minutes: by the target profile's estimate for two
/// samples, so that the answer is the same on every machine. With ARENITE_ALL_STEPS set, never.
inline bool has_long_steps(const std::string& network, const Shape& image) {
  if (std::getenv("ARENITE_ALL_STEPS")) return false;
  plan::StateLayout state;
  const auto step = train::compile_step(
      nn::model(network).layers, nn::cross_entropy(), optim::sgd({.lr = 0.02f}),
      {.name = "step", .batch = 2, .dataset = 2, .image = image, .how = {.lanes = 1}}, &state);
  double microseconds = 0;
  for (const graph::Task& task : step.spec.schedule.tasks) microseconds += task.microseconds;
  return microseconds > 3000;
}

}  // namespace arenite::testing
