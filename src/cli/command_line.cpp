#include "src/cli/command_line.hpp"

#include "src/base/nearest.hpp"
#include "src/cli/exit_status.hpp"
#include "src/cli/help.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string_view>
#include <vector>

namespace arenite::cli {
namespace {

/// For App::get_subcommands: all that there are, not those that were given.
const std::function<bool(const CLI::App*)> any;

/// "a whole number of 1 to 64": what the option's check says.
std::string expected_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  return colon == std::string::npos ? "a text" : type.substr(colon + 1);
}

/// Which option was given too often, without a value, or with one it does not take: the parser's
/// words only begin with its name.
std::string mismatch(const CLI::App& command, const std::string& words) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_flag = option->get_items_expected_max() == 0;
    if (is_flag && words.starts_with(option->get_single_name() + " "))
      return name + ": a value; expected none";
    if (!words.starts_with(name + ":")) continue;
    if (option->count() > 1)
      return fmt::format("{}: given {} times; expected once", name, option->count());
    return fmt::format("{}: no value; expected {}", name, expected_of(*option));
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
std::string missing(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0)
      return fmt::format("no {}; expected {}", option->get_name(), expected_of(*option));
  }
  return "too few arguments; expected more";
}

std::string without_dashes(std::string_view name) {
  return std::string(name.substr(std::min(name.find_first_not_of('-'), name.size())));
}

/// " (did you mean '--epochs'?)" for "--epoch" or "--epoch=3", or nothing. Who leaves the dashes
/// out of an option's name gets them back, but no guess: any word is near to some option.
std::string guess(const CLI::App& command, std::string_view given) {
  const bool dashes = given.starts_with('-');
  const std::string name = without_dashes(given.substr(0, given.find('=')));
  Nearest nearest(name);
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& known : option->get_lnames()) nearest.consider(known);
  }
  if (nearest.found().empty() || dashes == (nearest.found() == name)) return {};
  return " (did you mean '--" + nearest.found() + "'?)";
}

/// Of a word where a subcommand has to stand.
std::string guess_subcommand(const CLI::App& app, std::string_view given) {
  const std::string name = without_dashes(given.substr(0, given.find('=')));
  Nearest nearest(given);
  for (const CLI::App* command : app.get_subcommands(any)) {
    nearest.consider(command->get_name());
    const auto names =
        command->get_options([&](const CLI::Option* option) { return option->check_lname(name); });
    if (given.starts_with("--") && !names.empty()) {
      return fmt::format(" (it is an option of {}: arenite {} --{})", command->get_name(),
                         command->get_name(), name);
    }
  }
  return nearest.found().empty() ? guess(app, given) : " (" + nearest.hint() + ")";
}

/// Who has given nothing yet learns what there is.
std::string no_subcommand(const CLI::App& app) {
  return "no subcommand; expected one of these (hint: see arenite --help)\n\n" +
         list_of_commands(app) +
         "\nA first training, on images drawn in memory: arenite train --dataset synthetic "
         "--epochs 2";
}

std::string unknown_subcommand(const CLI::App& app, const std::string& given) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(any)) names.push_back(command->get_name());
  return fmt::format(
      "unknown subcommand or option '{}'{}; expected one of {} (hint: see arenite --help)", given,
      guess_subcommand(app, given), fmt::join(names, ", "));
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const auto left = app.remaining(true);
  if (chosen.empty())
    return left.empty() ? no_subcommand(app) : unknown_subcommand(app, left.front());
  const CLI::App& command = *chosen.front();
  const std::string name = command.get_name();
  std::string text = error.what();
  if (!left.empty()) {
    text = fmt::format("unknown argument '{}'{}; expected options of {}", left.front(),
                       guess(command, left.front()), name);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    text = mismatch(command, text);
  } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    text = excluded(text);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = missing(command);
  }
  return fmt::format("{} (hint: see arenite {} --help)", text, name);
}

}  // namespace

std::optional<Ending> read_command_line(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return Ending{exit_bad_input, refusal(app, error)};
    std::ostringstream out;  // --help, --version
    app.exit(error, out, out);
    return Ending{exit_ok, out.str()};
  }
}

}  // namespace arenite::cli
