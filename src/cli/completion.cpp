#include "src/cli/completion.hpp"

#include <algorithm>
#include <iostream>

namespace arenite::cli {
namespace {

/// Up to what only the help has room for.
std::string first_clause(const std::string& description) {
  std::size_t end = description.size();
  for (const char* stop : {"\n", ":", ";", " (", ". ", ", which", ", as in", ", else"})
    end = std::min(end, description.find(stop));
  return description.substr(0, end);
}

ShellOption shell_option(const Option& option) {
  return {.names = option.names,
          .says = first_clause(option.help),
          .argument = option.is_argument(),
          .takes_value = option.takes_value(),
          .repeats = option.repeats,
          .folders = option.kind == "FOLDER",
          .offer = option.offer};
}

ShellCommand shell_command(const Command& command) {
  ShellCommand all{.name = command.name, .says = command.summary, .options = {}};
  for (const Option& option : command.options) all.options.push_back(shell_option(option));
  return all;
}

}  // namespace

std::vector<ShellCommand> shell_commands(const Command& root) {
  std::vector<ShellCommand> all{shell_command(root)};
  for (const Command& command : root.subcommands) all.push_back(shell_command(command));
  return all;
}

Command* add_completion_options(Command& app, CompletionArguments& a) {
  Command& completion =
      add_command(app, "completion", "Print a script by which a shell completes command lines");
  completion.about = {
      "It completes subcommands, options, the values of those that take one of several names, and "
      "files. An installation brings the scripts along; from a build, load them as the examples "
      "do."};
  completion
      .add_choice("SHELL", a.shell, {"bash", "zsh", "fish"}, "for which shell: bash, zsh or fish")
      ->required();
  completion.examples = {
      {"completion bash > ~/.local/share/bash-completion/completions/arenite",
       "with the package bash-completion; without it: source <(arenite completion bash)"},
      {"completion zsh > ~/.zfunc/_arenite", "where ~/.zfunc is in $fpath, before compinit"},
      {"completion fish > ~/.config/fish/completions/arenite.fish", "fish finds it there"}};
  completion.statuses = {{exit_ok, "printed"}, {exit_bad_input, "wrong arguments"}};
  completion.read_on = "docs/command-line.md";
  return &completion;
}

int run_completion(const Command& root, const CompletionArguments& arguments) {
  const std::vector<ShellCommand> commands = shell_commands(root);
  std::cout << (arguments.shell == "bash"  ? bash_completion(commands)
                : arguments.shell == "zsh" ? zsh_completion(commands)
                                           : fish_completion(commands));
  return exit_ok;
}

}  // namespace arenite::cli
