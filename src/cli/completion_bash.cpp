// For bash alone, without the package bash-completion.
#include "src/base/shell_word.hpp"
#include "src/cli/completion.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace arenite::cli {
namespace {

constexpr const char* head =
    R"(# Completes command lines of arenite in bash. Made by: arenite completion bash

_arenite() {
  local words=() word belongs='' command='' count i
  # Bash breaks words at = and : as well; what it has broken there belongs together.
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    count=${#words[@]}
    if ((count > 0)) && [[ $belongs || $word == [=:]* ]]; then
      words[count - 1]+=$word
    else
      words+=("$word")
    fi
    if [[ $word == [=:]* ]]; then belongs=yes; else belongs=; fi
  done
  count=${#words[@]}
  ((count > 0)) || return 0
  local current=${words[count - 1]} option='' value='' front='' offer='' files='' folders=''
  ((count > 1)) && option=${words[count - 2]}
  # Bash replaces the last piece only.
  local piece=${COMP_WORDS[COMP_CWORD]}
  [[ $piece == [=:]* ]] && piece=
  local kept=${current%"$piece"}

  for word in "${words[@]:0:count-1}"; do
    if [[ $word != -* ]]; then
      command=$word
      break
    fi
  done
  value=$current
  if [[ $current == --*=* ]]; then
    option=${current%%=*}
    value=${current#*=}
    front=$option=
  fi
  case "$command $option" in
)";

constexpr const char* tail = R"(  esac

  COMPREPLY=()
  while IFS= read -r word; do
    word=$front$word
    COMPREPLY+=("${word#"$kept"}")
  done < <(
    IFS=' '
    compgen -W "$offer" -- "$value"
    [[ $files ]] && compgen -f -- "$value"
    [[ $folders ]] && compgen -d -- "$value"
  )
  # These work only while bash itself completes.
  if ((${#COMPREPLY[@]} > 0)); then
    word=$kept${COMPREPLY[0]}
    if [[ $files$folders && " $offer " != *" ${word#"$front"} "* ]]; then
      compopt -o filenames 2>/dev/null
    elif ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *: ]]; then
      compopt -o nospace 2>/dev/null
    fi
  fi
  return 0
}

complete -F _arenite arenite
)";

/// "offer='a b' files=yes"
std::string assignments(const Option& option) {
  std::string text;
  if (!option.offer.words.empty())
    text += " offer=" + quoted_for_shell(fmt::format("{}", fmt::join(option.offer.words, " ")));
  if (option.offer.files) text += option.takes_folder() ? " folders=yes" : " files=yes";
  return text.empty() ? " :" : text;
}

/// After options that take a value: a case for each kind of value.
std::string values_of(const Command& command, const std::string& prefix) {
  std::vector<std::pair<std::string, std::string>> cases;  // what is offered, patterns
  for (const Option& option : command.options) {
    if (option.is_argument() || !option.takes_value()) continue;
    const std::string offered = assignments(option);
    auto known = std::ranges::find(cases, offered, &std::pair<std::string, std::string>::first);
    if (known == cases.end()) known = cases.insert(known, {offered, ""});
    for (const std::string& name : option.names) {
      known->second += (known->second.empty() ? "" : " | ") + quoted_for_shell(prefix + " " + name);
    }
  }
  std::string text;
  for (const auto& [offered, patterns] : cases)
    text += fmt::format("    {}){} ;;\n", patterns, offered);
  return text;
}

/// Elsewhere: options, or what an argument may be.
std::string others_of(const Command& command, const std::string& prefix,
                      const std::vector<std::string>& subcommands) {
  std::vector<std::string> names;
  Option argument{.offer = {.words = subcommands}};
  for (const Option& option : command.options) {
    if (option.is_argument()) {
      argument = option;
    } else {
      names.insert(names.end(), option.names.begin(), option.names.end());
    }
  }
  const bool only_options = argument.offer.words.empty() && !argument.offer.files;
  const std::string all = " offer=" + quoted_for_shell(fmt::format("{}", fmt::join(names, " ")));
  if (only_options) return fmt::format("    {}*){} ;;\n", quoted_for_shell(prefix + " "), all);
  return fmt::format("    {}*)\n      if [[ $current == -* ]]; then{}; else{}; fi\n      ;;\n",
                     quoted_for_shell(prefix + " "), all, assignments(argument));
}

}  // namespace

std::string bash_completion(const Command& root) {
  std::string text = head;
  for (const Command& command : root.subcommands)
    text += values_of(command, command.name) + others_of(command, command.name, {});
  return text + values_of(root, "") + others_of(root, "", names_of(root.subcommands)) + tail;
}

}  // namespace arenite::cli
