// Optimizers: the operator that changes a parameter when its gradient is complete.
#pragma once

#include <arenite/graph/attributes.hpp>

#include <string>

namespace arenite::optim {

/// Data: the same as `train` says in scripts.
struct Optimizer {
  float learning_rate = 0;  ///< at first; a buffer of the program, which may change between steps
  std::string name;         ///< an operator that `is_optimizer` (graph/operator.hpp)
  graph::Attributes attributes;
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
