// The subcommands of `arenite`. Each adds itself to the parser and returns what to run if it was
// chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace arenite::cli {

/// Exit statuses of every subcommand.
enum ExitStatus : int {
  exit_ok = 0,
  exit_failure = 1,    ///< a run failed although its input was right
  exit_bad_input = 2,  ///< wrong arguments, files or data
  exit_interrupted = 130,
};

/// Runs the subcommand; returns the exit status.
using Command = std::function<int()>;

Command add_train(CLI::App& app);

}  // namespace arenite::cli
