// `arenite completion`: scripts by which shells complete command lines, made from the parsers
// themselves.
#pragma once

#include "src/cli/command.hpp"

#include <string>
#include <string_view>

namespace arenite::cli {

struct CompletionArguments {
  std::string shell;
};

Command* add_completion_options(Command& app, CompletionArguments& arguments);
int run_completion(const Command& root, const CompletionArguments& arguments);

/// Of an option's help, what shells have room for.
std::string first_clause(const std::string& help);

/// With a backslash before each of these characters.
std::string escaped(std::string_view text, std::string_view what);

std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

}  // namespace arenite::cli
