#include "src/base/shell_word.hpp"
#include "src/cli/completion.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace arenite::cli {
namespace {

/// What _arguments does to complete a value.
std::string action(const Option& option) {
  const std::string files = option.takes_folder() ? "_files -/" : "_files";
  if (option.offer.words.empty()) return option.offer.files ? files : " ";
  // What goes on behind a colon gets no space.
  std::vector<std::string> whole, begun;
  for (const std::string& word : option.offer.words)
    (word.ends_with(':') ? begun : whole).push_back(word);
  std::vector<std::string> parts;
  if (!whole.empty()) parts.push_back(fmt::format("compadd -- {}", fmt::join(whole, " ")));
  if (!begun.empty()) parts.push_back(fmt::format("compadd -S \"\" -- {}", fmt::join(begun, " ")));
  if (option.offer.files) parts.push_back(files);
  return "{" + escaped(fmt::format("{}", fmt::join(parts, "; ")), ":\\") + "}";
}

std::string kind_of(const Option& option) {
  return escaped(option.is_argument() ? option.names.front() : first_clause(option.help), ":\\");
}

/// The specifications of one option, for _arguments.
std::string specifications(const Option& option) {
  if (option.is_argument()) {
    return fmt::format("        {} \\\n",
                       quoted_for_shell(fmt::format("{}:{}:{}", option.repeats ? "*" : "1",
                                                    kind_of(option), action(option))));
  }
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    std::string specification =
        option.repeats ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    specification += name;
    if (option.takes_value() && is_long) specification += "=";
    specification += "[" + escaped(first_clause(option.help), "[]\\") + "]";
    if (option.takes_value()) specification += ":" + kind_of(option) + ":" + action(option);
    text += fmt::format("        {} \\\n", quoted_for_shell(specification));
  }
  return text;
}

std::string arguments(const Command& command) {
  std::string text;
  for (const Option& option : command.options) text += specifications(option);
  return text;
}

}  // namespace

std::string zsh_completion(const Command& root) {
  std::string described, cases;
  for (const Command& command : root.subcommands) {
    described += fmt::format(
        "        {}\n", quoted_for_shell(escaped(command.name, ":\\") + ":" + command.summary));
    cases += fmt::format(
        "        {})\n          _arguments \\\n{}            && return 0\n          ;;\n",
        command.name, arguments(command));
  }
  return fmt::format(R"(#compdef arenite
# Completes command lines of arenite in zsh. Made by: arenite completion zsh

_arenite() {{
  local curcontext=$curcontext context state state_descr line
  typeset -A opt_args
  _arguments -C \
{}        '1:subcommand:->subcommand' \
        '*::argument:->argument' && return 0
  case $state in
    subcommand)
      local -a subcommands
      subcommands=(
{}      )
      _describe subcommand subcommands
      ;;
    argument)
      case $line[1] in
{}      esac
      ;;
  esac
}}

if [[ ${{funcstack[1]}} == _arenite ]]; then
  _arenite "$@"
else
  compdef _arenite arenite
fi
)",
                     arguments(root), described, cases);
}

}  // namespace arenite::cli
