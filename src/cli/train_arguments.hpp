// The options of `arenite train`, and what they were when the command line was read.
#pragma once

#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/kernel.hpp>
#include <arenite/train/optimizer.hpp>

#include "src/cli/checkpoints.hpp"
#include "src/cli/command.hpp"
#include "src/cli/cut_arguments.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arenite::cli {

inline constexpr std::int64_t usual_batch = 64;

/// Each is in the range that its option's help names.
struct TrainArguments {
  std::string model = "cnn2";
  std::string script;   ///< a file, in place of a model; empty: none
  std::string dataset;  ///< empty: the model's own
  std::string data;
  int epochs = 10;
  std::int64_t batch = 0;  ///< 0: not given
  std::string optimizer = "sgd";
  std::vector<std::pair<std::string, double>> numbers;  ///< of the optimizer, in their order
  std::optional<float> lr;
  std::string schedule;  ///< "NAME:NUMBER=X,…"; empty: none
  float clip_norm = 0, clip_value = 0;
  std::vector<graph::ParameterGroup> groups;
  std::int64_t accumulate = 1;  ///< batches of a step
  std::optional<float> ema;
  bool check_loss = true;
  std::uint64_t seed = 1;
  std::string device = "cpu";
  std::int64_t memory = 0;  ///< of each GPU; 0: not given
  bool cuda_graphs = true;
  std::optional<bool> resident_data;
  std::string kernels;  ///< a file of choices
  int workers = 0;      ///< 0: not given, and likewise the next and limit
  CutArguments cut;
  std::int64_t limit = 0;
  std::optional<float> validation;  ///< share of the training images; none: the test images
  bool shuffle = true;
  std::optional<float> init;  ///< the A of uniform:A
  plan::ArenaLayout arenas = plan::ArenaLayout::overlay;
  bool fuse = true;
  runtime::Compute compute = runtime::Compute::float32;
  bool json = false;
  std::string log;
  bool explain = false;
  bool draw = false;
  bool profile = false;
  bool count_heap = false;
  std::string plan_svg, plan_json;
  CheckpointArguments checkpoints;
};

/// What they say of the optimizer; SGD begins with a rate of 0.02 and a momentum of 0.9, and a
/// schedule is one of all steps unless it says of how many. Throws Error on names and numbers that
/// there are not.
optim::Optimizer optimizer_of(const TrainArguments& arguments, std::int64_t steps);

/// What epochs are told of: "test" or "validation" images.
const char* tested_by(const TrainArguments& arguments);

/// Steps that --profile records: enough for means; the records of more would outgrow the caches.
inline constexpr long profiled_steps = 1000;

/// Adds the subcommand to the parser, which owns it and fills `arguments` while it reads.
Command* add_train_options(Command& app, TrainArguments& arguments);

}  // namespace arenite::cli
