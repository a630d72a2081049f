// The subcommands of `arenite`.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/completion.hpp"
#include "src/cli/plan_arguments.hpp"
#include "src/cli/saved_network.hpp"
#include "src/cli/train_arguments.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace arenite::cli {

/// Of `arenite doctor`: whether this machine can train, and how to mend what keeps it from it.
struct DoctorArguments {
  std::vector<std::string> checks;  ///< none: all of them
  bool json = false;
};

struct VersionArguments {
  bool json = false;
};

struct ShowArguments {
  std::string file;
  bool script = false;
  bool json = false;
};

struct EvaluateArguments {
  SavedNetworkArguments network;
  std::string dataset, data;    ///< empty: that of the run; and where train finds it
  std::string images = "test";  ///< or "training"
  std::int64_t limit = 0;       ///< 0: all
  std::int64_t top = 3;
  std::string svg;  ///< a file; empty: none
  bool json = false;
};

struct PredictArguments {
  SavedNetworkArguments network;
  std::vector<std::string> images;  ///< files
  std::int64_t top = 0;             ///< 0: not given
  bool json = false;
};

/// What the options of each were when the command line was read.
struct Arguments {
  TrainArguments train;
  EvaluateArguments evaluate;
  PredictArguments predict;
  PlanArguments plan;
  ShowArguments show;
  DoctorArguments doctor;
  CompletionArguments completion;
  VersionArguments version;
};

/// Adds all of them, and what `arenite --help` says. `arguments` is filled while the command line
/// is read, and has to live until the chosen command has run.
void add_commands(Command& app, Arguments& arguments);

Command* add_doctor_options(Command& app, DoctorArguments& arguments);
Command* add_evaluate_options(Command& app, EvaluateArguments& arguments);
Command* add_predict_options(Command& app, PredictArguments& arguments);
Command* add_show_options(Command& app, ShowArguments& arguments);
Command* add_version_options(Command& app, VersionArguments& arguments);

int run_plan(const PlanArguments& arguments);
int run_train(const TrainArguments& arguments);
int run_evaluate(const EvaluateArguments& arguments);
int run_predict(const PredictArguments& arguments);
/// exit_failure where a check fails.
int run_doctor(const DoctorArguments& arguments);
int run_show(const ShowArguments& arguments);
int run_version(const VersionArguments& arguments);

/// This version, and the GPUs that there are.
std::string version_text();

}  // namespace arenite::cli
