// Reading the command line, apart from doing what it says.
#pragma once

#include "src/cli/command.hpp"

#include <string>

namespace arenite::cli {

/// What a command line asks for.
struct Asked {
  const Command* command = nullptr;  ///< to be run; none: the text is said instead
  int status = 0;
  std::string text = {};  ///< for standard output when the status is 0, else for standard error
};

/// Fills what the options are bound to, of the program or of the subcommand that is given.
Asked read_command_line(const Command& app, int argc, const char* const* argv);

}  // namespace arenite::cli
