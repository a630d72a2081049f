#include "src/cli/help.hpp"

#include "src/base/installed.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace arenite::cli {
namespace {

constexpr std::size_t option_column = 28;

/// "-h, --help", "--model NAME", "INPUT"
std::string left_of(const Option& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
  return option.is_argument() || !option.takes_value() ? names : names + " " + option.kind;
}

/// The description, with the default behind its first line.
std::string right_of(const Option& option) {
  const std::string& text = option.help;
  if (option.shown_default.empty()) return text;
  const std::size_t end = std::min(text.find('\n'), text.size());
  const bool colon = end > 0 && text[end - 1] == ':';
  return text.substr(0, end - (colon ? 1 : 0)) + " (default: " + option.shown_default + ")" +
         (colon ? ":" : "") + text.substr(end);
}

std::string usage(const Command& command) {
  std::string text = "usage: " + command.called;
  if (!command.subcommands.empty()) text += " SUBCOMMAND";
  for (const Option& option : command.options) {
    if (!option.is_argument()) continue;
    text += option.is_required ? " " + option.name() : " [" + option.name() + "]";
    if (option.repeats) text += "…";
  }
  return text + " [OPTION]…\n";
}

std::string options(const Command& command) {
  std::string text;
  const auto add = [&](const std::string& heading, auto wanted) {
    bool first = true;
    for (const Option& option : command.options) {
      if (!wanted(option)) continue;
      if (first) text += "\n" + heading + "\n";
      first = false;
      text += wrapped("  " + left_of(option), right_of(option), option_column);
    }
  };
  add("Arguments", [](const Option& option) { return option.is_argument(); });
  std::vector<std::string> headings;
  for (const Option& option : command.options) {
    if (std::ranges::find(headings, option.heading) == headings.end())
      headings.push_back(option.heading);
  }
  std::rotate(headings.begin(), headings.begin() + 1,
              headings.end());  // that of --help is the last
  for (const std::string& heading : headings) {
    add(heading,
        [&](const Option& option) { return option.heading == heading && !option.is_argument(); });
  }
  return text;
}

std::string examples(const Command& command) {
  if (command.examples.empty()) return {};
  std::size_t column = 0;
  for (const Example& example : command.examples)
    column = std::max(column, columns_of(example.line) + 12);
  // What it does stands behind a command, or below where that has no room.
  const bool below = std::ranges::any_of(command.examples, [&](const Example& example) {
    return column + columns_of(example.says) > help_width;
  });
  std::string text = "\nExamples\n";
  for (const Example& example : command.examples)
    text += wrapped("  arenite " + example.line, example.says, below ? 6 : column);
  return text;
}

std::string statuses(const Command& command) {
  if (command.statuses.empty()) return {};
  std::string text = "\nExit status\n";
  for (const auto& [status, means] : command.statuses)
    text += wrapped(fmt::format("  {}", static_cast<int>(status)), means, 7);
  return text;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string wrapped(std::string_view first, std::string_view text, std::size_t indent) {
  std::string all(first);
  std::size_t column = columns_of(first);
  const auto new_line = [&] {
    all += '\n';
    column = 0;
  };
  const auto go_to = [&](std::size_t target) {
    all.append(target - column, ' ');
    column = target;
  };
  if (column > 0 && column + 2 > indent) new_line();
  for (bool item = false; item == false || !text.empty(); item = true) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    for (bool begun = false; !line.empty(); begun = true) {
      const std::string_view word = line.substr(0, line.find(' '));
      line.remove_prefix(std::min(line.size(), word.size() + 1));
      const bool breaks = begun && column + 1 + columns_of(word) > help_width;
      if (breaks) new_line();
      go_to(breaks ? indent + (item ? 2 : 0) : begun ? column + 1 : indent);
      all += word;
      column += columns_of(word);
    }
    new_line();
  }
  return all;
}

std::string list_of_commands(const Command& app) {
  std::string text;
  for (const Command& command : app.subcommands)
    text += wrapped("  " + command.name, command.summary, 14);
  return text;
}

std::string help_of(const Command& command) {
  std::string text = wrapped("", command.summary + ".", 0) + "\n";
  for (const std::string& paragraph : command.about) text += wrapped("", paragraph, 0) + "\n";
  text += usage(command);
  if (!command.subcommands.empty()) text += "\nSubcommands\n" + list_of_commands(command);
  text += options(command) + examples(command) + statuses(command);
  if (!command.read_on.empty()) {
    const std::string where = fmt::format("Read on: {} in {}", command.read_on, place_of_pages());
    text += "\n" + wrapped("", where, 0);
  }
  return text;
}

}  // namespace arenite::cli
