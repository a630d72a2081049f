#include "src/cli/completion.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace arenite::cli {
namespace {

/// In single quotes, where fish knows \' and \\.
std::string fish_quoted(std::string_view text) { return "'" + escaped(text, "'\\") + "'"; }

std::string line(const std::string& condition, const Option& option) {
  std::string text = "complete -c arenite -n " + fish_quoted(condition);
  if (!option.is_argument()) {
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    // Whether files are among the values.
    if (option.takes_value())
      text += option.offer.files && !option.takes_folder() ? " -r -F" : " -x";
  } else if (option.offer.files) {
    text += " -F";
  }
  std::string words = fmt::format("{}", fmt::join(option.offer.words, " "));
  if (option.takes_folder()) words += "(__fish_complete_directories)";
  if (!words.empty()) text += " -a " + fish_quoted(words);
  return text + " -d " + fish_quoted(first_clause(option.help)) + "\n";
}

}  // namespace

std::string fish_completion(const Command& root) {
  const std::string none = "__fish_use_subcommand";
  std::string text =
      "# Completes command lines of arenite in fish. Made by: arenite completion fish\n\n"
      "complete -c arenite -f\n";
  for (const Option& option : root.options) text += line(none, option);
  for (const Command& command : root.subcommands) {
    text += fmt::format("\ncomplete -c arenite -n {} -a {} -d {}\n", none, command.name,
                        fish_quoted(command.summary));
    for (const Option& option : command.options)
      text += line("__fish_seen_subcommand_from " + command.name, option);
  }
  return text;
}

}  // namespace arenite::cli
