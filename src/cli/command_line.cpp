#include "src/cli/command_line.hpp"

#include "src/base/nearest.hpp"
#include "src/cli/help.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

namespace arenite::cli {
namespace {

void add_to(CLI::App& parser, const Option& option) {
  const std::string& name = option.name();
  if (option.instead) {
    parser.set_version_flag(name, option.instead);
  } else if (!option.takes_value()) {
    parser.add_flag_callback(name, [&option] { option.take({}); })->disable_flag_override();
  } else {
    const auto take = [&option](const std::vector<std::string>& texts) {
      try {
        for (const std::string& text : texts) option.take(text);
      } catch (const Refusal& refusal) {
        throw CLI::ValidationError(option.name(), refusal.why);
      }
    };
    CLI::Option* added =
        option.repeats ? parser.add_option_function<std::vector<std::string>>(name, take)
                       : parser.add_option_function<std::string>(
                             name, [take](const std::string& text) { take(std::vector{text}); });
    if (!option.is_argument()) added->allow_extra_args(false);
    added->check(
        CLI::Validator([&option](std::string& text) { return option.rule.refuse(text); }, ""));
    added->required(option.is_required);
  }
}

/// Borrows the command.
std::shared_ptr<CLI::App> parser_of(const Command& command) {
  auto parser = std::make_shared<CLI::App>(command.summary, command.name);
  for (const Option& option : command.options) {
    if (&option != &command.options.front()) add_to(*parser, option);  // it has --help
  }
  for (const Option& option : command.options) {
    for (const std::string& other : option.excluded)
      parser->get_option(option.name())->excludes(parser->get_option(other));
  }
  for (const Command& subcommand : command.subcommands)
    parser->add_subcommand(parser_of(subcommand));
  if (!command.subcommands.empty()) parser->require_subcommand(1);
  return parser;
}

std::string without_dashes(std::string_view name) {
  return std::string(name.substr(std::min(name.find_first_not_of('-'), name.size())));
}

/// The subcommand that was given, or none; of a program without any, the program.
const Command* chosen(const Command& app, const CLI::App& parser) {
  if (app.subcommands.empty()) return &app;
  const auto given = parser.get_subcommands();
  if (given.empty()) return nullptr;
  return &*std::ranges::find(app.subcommands, given.front()->get_name(), &Command::name);
}

/// "a whole number of 1 to 64"
std::string expected_of(const Option& option) {
  return option.rule.what.empty() ? "a text" : option.rule.what;
}

/// Which option was given too often, without a value, or with one it does not take: the parser's
/// words only begin with its name.
std::string mismatch(const Command& command, const CLI::App& parser, const std::string& words) {
  for (const Option& option : command.options) {
    const std::string& name = option.name();
    if (!option.takes_value() && words.starts_with(without_dashes(name) + " "))
      return name + ": a value; expected none";
    if (!words.starts_with(name + ":")) continue;
    if (const std::size_t count = parser.count(name); count > 1)
      return fmt::format("{}: given {} times; expected once", name, count);
    return fmt::format("{}: no value; expected {}", name, expected_of(option));
  }
  return words;
}

/// Two that must not be given together: the parser says "--out excludes --verify".
std::string excluded(const std::string& words) {
  constexpr std::string_view verb = " excludes ";
  const std::size_t at = words.find(verb);
  if (at == std::string::npos) return words;
  return words.substr(0, at) + " together with " + words.substr(at + verb.size()) +
         "; expected one of them";
}

/// The first that must be given and was not.
std::string missing(const Command& command, const CLI::App& parser) {
  for (const Option& option : command.options) {
    if (option.is_required && parser.count(option.name()) == 0)
      return fmt::format("no {}; expected {}", option.name(), expected_of(option));
  }
  return "too few arguments; expected more";
}

/// " (did you mean '--epochs'?)" for "--epoch" or "--epoch=3", or nothing. Who leaves the dashes
/// out of an option's name gets them back, but no guess: any word is near to some option.
std::string guess(const Command& command, std::string_view given) {
  const bool dashes = given.starts_with('-');
  const std::string name = without_dashes(given.substr(0, given.find('=')));
  if (const auto other = command.elsewhere.find(name); dashes && other != command.elsewhere.end())
    return " (here it is written as " + other->second + ")";
  Nearest nearest(name);
  for (const Option& option : command.options) {
    if (!option.is_argument()) nearest.consider(without_dashes(option.name()));
  }
  if (nearest.found().empty() || dashes == (nearest.found() == name)) return {};
  return " (did you mean '--" + nearest.found() + "'?)";
}

/// Of a word where a subcommand has to stand.
std::string guess_subcommand(const Command& app, std::string_view given) {
  const std::string name = without_dashes(given.substr(0, given.find('=')));
  Nearest nearest(given);
  for (const Command& command : app.subcommands) {
    nearest.consider(command.name);
    if (given.starts_with("--") &&
        std::ranges::find(command.options, "--" + name, &Option::name) != command.options.end()) {
      return fmt::format(" (it is an option of {}: arenite {} --{})", command.name, command.name,
                         name);
    }
  }
  return nearest.found().empty() ? guess(app, given) : " (" + nearest.hint() + ")";
}

/// Who has given nothing yet learns what there is.
std::string no_subcommand(const Command& app) {
  return "no subcommand; expected one of these (hint: see arenite --help)\n\n" +
         list_of_commands(app) +
         "\nA first training, on images drawn in memory: arenite train --dataset synthetic "
         "--epochs 2";
}

std::string unknown_subcommand(const Command& app, const std::string& given) {
  return fmt::format(
      "unknown subcommand or option '{}'{}; expected one of {} (hint: see arenite --help)", given,
      guess_subcommand(app, given), fmt::join(names_of(app.subcommands), ", "));
}

std::string refusal(const Command& app, const CLI::App& parser, const CLI::ParseError& error) {
  const Command* const command = chosen(app, parser);
  const auto left = parser.remaining(true);
  if (command == nullptr)
    return left.empty() ? no_subcommand(app) : unknown_subcommand(app, left.front());
  const CLI::App& its_parser = command == &app ? parser : *parser.get_subcommands().front();
  std::string text = error.what();
  if (!left.empty()) {
    text = fmt::format("unknown argument '{}'{}; expected options of {}", left.front(),
                       guess(*command, left.front()), command->name);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    text = mismatch(*command, its_parser, text);
  } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    text = excluded(text);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = missing(*command, its_parser);
  }
  return fmt::format("{} (hint: see {} --help)", text, command->called);
}

}  // namespace

Asked read_command_line(const Command& app, int argc, const char* const* argv) {
  const auto parser = parser_of(app);
  try {
    parser->parse(argc, argv);
    return {.command = chosen(app, *parser)};
  } catch (const CLI::CallForHelp&) {
    const Command* const command = chosen(app, *parser);
    return {.text = help_of(command == nullptr ? app : *command)};
  } catch (const CLI::CallForVersion& version) {
    return {.text = version.what() + std::string("\n")};
  } catch (const CLI::ParseError& error) {
    return {.status = exit_bad_input, .text = refusal(app, *parser, error)};
  }
}

}  // namespace arenite::cli
