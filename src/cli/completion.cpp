#include "src/cli/completion.hpp"

#include <algorithm>
#include <iostream>

namespace arenite::cli {

std::string first_clause(const std::string& help) {
  std::size_t end = help.size();
  for (const char* stop : {"\n", ":", ";", " (", ". ", ", which", ", as in", ", else"})
    end = std::min(end, help.find(stop));
  return help.substr(0, end);
}

std::string escaped(std::string_view text, std::string_view what) {
  std::string all;
  for (const char c : text) {
    if (what.find(c) != std::string_view::npos) all += '\\';
    all += c;
  }
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
  std::cout << (arguments.shell == "bash"  ? bash_completion(root)
                : arguments.shell == "zsh" ? zsh_completion(root)
                                           : fish_completion(root));
  return exit_ok;
}

}  // namespace arenite::cli
