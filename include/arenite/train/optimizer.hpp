// Optimizers: what is appended to the graph when a parameter's gradient is complete.
#pragma once

#include <arenite/graph/builder.hpp>

#include <functional>
#include <string>

namespace arenite::optim {

/// What an update sees of one parameter.
struct Update {
  graph::Builder& builder;
  std::string name;  ///< the parameter's
  graph::ValueId parameter, gradient;
  graph::ValueId learning_rate;  ///< float32 [1], data: may change between steps
};

struct Optimizer {
  float learning_rate = 0;
  std::function<void(const Update&)> append;  ///< declares its state and appends the update op
};

struct SgdOptions {
  float lr = 0.01f;
  float momentum = 0;      ///< 0 to below 1
  float weight_decay = 0;  ///< at least 0
};

/// w ← w − lr·v with v ← momentum·v + g + weight_decay·w (PyTorch's form). Throws Error on values
/// out of range.
Optimizer sgd(SgdOptions options);

}  // namespace arenite::optim
