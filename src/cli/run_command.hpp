// What main() does of a program whose command line is a Command.
#pragma once

#include "src/cli/command.hpp"

namespace arenite::cli {

/// Reads the command line and does what it asks for. Returns the exit status; errors are said on
/// standard error, by the command's name.
int run_command(const Command& command, int argc, const char* const* argv);

}  // namespace arenite::cli
