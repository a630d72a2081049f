// The subcommands of `arenite`, and how they end.
#pragma once

namespace arenite::cli {

struct PlanArguments;
struct TrainArguments;

/// Exit statuses of every subcommand.
enum ExitStatus : int {
  exit_ok = 0,
  exit_failure = 1,    ///< a run failed although its input was right
  exit_bad_input = 2,  ///< wrong arguments, files or data, and files that cannot be written
  exit_capacity = 3,   ///< a plan needs more bytes than it may have
  exit_interrupted = 130,
};

/// Each returns its exit status, or throws what main() knows one for.
int run_plan(const PlanArguments& arguments);
int run_train(const TrainArguments& arguments);

}  // namespace arenite::cli
