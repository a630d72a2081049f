// The subcommands of `arenite`.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/completion.hpp"
#include "src/cli/doctor/doctor.hpp"
#include "src/cli/plan_arguments.hpp"
#include "src/cli/train_arguments.hpp"
#include "src/cli/version.hpp"

namespace arenite::cli {

/// What the options of each were when the command line was read.
struct Arguments {
  TrainArguments train;
  PlanArguments plan;
  DoctorArguments doctor;
  CompletionArguments completion;
  VersionArguments version;
};

/// Adds all of them, and what `arenite --help` says. `arguments` is filled while the command line
/// is read, and has to live until the chosen command has run.
void add_commands(Command& app, Arguments& arguments);

int run_plan(const PlanArguments& arguments);
int run_train(const TrainArguments& arguments);

}  // namespace arenite::cli
