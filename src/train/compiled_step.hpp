// From layers, a loss and an optimizer to the program of a step that draws its batch from a data
// set.
#pragma once

#include <arenite/nn/nn.hpp>
#include <arenite/train/optimizer.hpp>

#include <optional>
#include <string>

#include "src/compile/compile.hpp"

namespace arenite::train {

struct StepRequest {
  std::string name;
  std::int64_t batch = 0;    ///< samples of one step
  std::int64_t dataset = 0;  ///< samples of the set that steps draw from
  Shape image;               ///< [H, W, C]
  /// Where there are GPUs, lanes draw their samples there, from a copy of the set. Else a CPU
  /// worker does, and the batch is copied.
  bool resident = false;
  bool training = true;                           ///< else forward and statistics only
  std::optional<graph::BatchOfUpdate> part = {};  ///< as in compile::Entry
  compile::Options how;
};

/// All passes, and where `state` is given a plan, which places there what outlives a step.
compile::Compiled compile_step(const nn::Layer& model, const nn::Loss& loss,
                               const optim::Optimizer& optimizer, const StepRequest& request,
                               plan::StateLayout* state = nullptr);

}  // namespace arenite::train
