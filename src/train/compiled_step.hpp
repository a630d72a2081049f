// From layers, a loss and an optimizer to the program of a step that draws its batch from a data
// set.
#pragma once

#include <arenite/nn/nn.hpp>
#include <arenite/train/optimizer.hpp>

#include <optional>
#include <string>

#include "src/compile/compile.hpp"

namespace arenite::train {

/// Names of the values that the trainer and its programs agree on.
namespace names {
inline constexpr const char* images = "images";          // constant uint8 [M, H, W, C]
inline constexpr const char* labels = "labels";          // constant uint8 [M]
inline constexpr const char* order = "order";            // constant int32 [M]
inline constexpr const char* first = "first";            // constant int64 [1]: 0
inline constexpr const char* cursor = "cursor";          // input int64 [1]
inline constexpr const char* statistics = "statistics";  // buffer float64 [2]
}  // namespace names

struct StepRequest {
  std::string name;
  std::int64_t batch = 0;    ///< samples of one step
  std::int64_t dataset = 0;  ///< samples of the set that steps draw from
  Shape image;               ///< [H, W, C]
  /// Where there are GPUs, lanes gather their samples there, from a copy of the set: constants
  /// named behind `set`, since each set has its own. Else a CPU worker does, and the batch is
  /// copied.
  bool resident = false;
  std::string set;
  bool training = true;                           ///< else forward and statistics only
  std::optional<graph::BatchOfUpdate> part = {};  ///< as in compile::Entry
  /// In which all parameters begin, as ±range; none: as their layers ask for.
  std::optional<float> init_range = {};
  compile::Options how;
};

/// What a constant of a set is called.
inline std::string name_in(const std::string& set, const char* name) {
  return set.empty() ? name : set + "/" + name;
}

/// What the passes begin with: batches drawn, the layers, the loss, and how it is trained.
graph::Graph step_graph(const nn::Layer& model, const nn::Loss& loss,
                        const optim::Optimizer& optimizer, const StepRequest& request);

/// All passes, and where `state` is given a plan, which places there what outlives a step.
compile::Compiled compile_step(const nn::Layer& model, const nn::Loss& loss,
                               const optim::Optimizer& optimizer, const StepRequest& request,
                               plan::StateLayout* state = nullptr);

}  // namespace arenite::train
