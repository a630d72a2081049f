// `arenite completion`: scripts by which shells complete command lines, made from the parsers
// themselves.
#pragma once

#include "src/cli/command.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace arenite::cli {

struct CompletionArguments {
  std::string shell;
};

Command* add_completion_options(Command& app, CompletionArguments& arguments);
int run_completion(const Command& root, const CompletionArguments& arguments);

/// An option or argument as shells see it.
struct ShellOption {
  std::vector<std::string> names;  ///< "-h", "--help"; of an argument "INPUT"
  std::string says;                ///< its description's first clause
  bool argument = false;
  bool takes_value = false;
  bool repeats = false;
  bool folders = false;  ///< of files, only these
  Offer offer;
};

struct ShellCommand {
  std::string name;
  std::string says;
  std::vector<ShellOption> options;
};

/// The root, then its subcommands.
std::vector<ShellCommand> shell_commands(const Command& root);

std::string bash_completion(const std::vector<ShellCommand>& commands);
std::string zsh_completion(const std::vector<ShellCommand>& commands);
std::string fish_completion(const std::vector<ShellCommand>& commands);

}  // namespace arenite::cli
