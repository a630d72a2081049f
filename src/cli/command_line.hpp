// Reading the command line, apart from doing what it says.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace arenite::cli {

/// What is said instead of running a command, and the exit status.
struct Ending {
  int status = 0;
  std::string text;  ///< for standard output when the status is 0, else for standard error
};

/// Fills what the subcommands' options are bound to. None: the arguments are right, and the
/// subcommand in them is to be run.
std::optional<Ending> read_command_line(CLI::App& app, int argc, const char* const* argv);

}  // namespace arenite::cli
