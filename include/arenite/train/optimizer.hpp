// Optimizers: the operator that changes a parameter when its gradient is complete.
#pragma once

#include <arenite/graph/graph.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::optim {

/// Data: the same as `train` says in scripts.
struct Optimizer {
  float learning_rate = 0;  ///< at first; a state of the program, which may change between steps
  std::string name;         ///< an operator that `is_optimizer` (graph/operator.hpp)
  graph::Attributes attributes;
  std::string schedule;  ///< and the other settings of graph::Training
  double clip_value = 0, clip_norm = 0;
  std::vector<graph::ParameterGroup> groups = {};
  std::optional<graph::Averaging> averaging = {};  ///< evaluations are of the means
  bool check_loss = true;
};

/// The optimizers that there are: "adam", "adamw", "lion", "sgd", …
std::vector<std::string> names();

/// An optimizer with its standard numbers but for those that are given, as in
/// named("adam", {{"beta1", 0.8}}, 0.01f), and with the learning rate that it begins with in
/// PyTorch or in its paper, `sgd` with that of SgdOptions, unless another is given. Throws Error on
/// a name that is none (as `names`), on a number that it has not or that is out of range, and on a
/// rate that is not finite or below 0.
Optimizer named(std::string_view name, const graph::Attributes& numbers = {},
                std::optional<float> learning_rate = {});

/// What Optimizer::schedule may be, by name: schedule("cosine", {{"steps", 1000.0}}) ends at 0 in
/// 1,000 steps. Any formula of `$1`, the number of the step from 1 on, is one too. Throws Error on
/// a name that is none and on numbers that it has not (docs/scripts.md lists them).
std::string schedule(std::string_view name, const graph::Attributes& numbers);

struct SgdOptions {
  float lr = 0.01f;
  float momentum = 0;      ///< 0 to below 1
  float weight_decay = 0;  ///< at least 0
};

/// w ← w − lr·v with v ← momentum·v + g + weight_decay·w (PyTorch's form). Throws Error on values
/// out of range.
Optimizer sgd(SgdOptions options);

}  // namespace arenite::optim
