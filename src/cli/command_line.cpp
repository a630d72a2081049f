#include "src/cli/command_line.hpp"

#include "src/cli/commands.hpp"

#include <spdlog/fmt/fmt.h>

#include <sstream>

namespace arenite::cli {
namespace {

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

/// The first that must be given and was not.
std::string missing(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0)
      return fmt::format("no {}; expected {}", option->get_name(), expected_of(*option));
  }
  return "too few arguments; expected more";
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const auto left = app.remaining(true);
  if (chosen.empty()) {
    const std::string found =
        left.empty() ? "no subcommand" : "unknown subcommand or option '" + left.front() + "'";
    return found + "; expected train or plan (hint: see arenite --help)";
  }
  const std::string name = chosen.front()->get_name();
  std::string text = error.what();
  if (!left.empty()) {
    text = fmt::format("unknown argument '{}'; expected options of {}", left.front(), name);
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    text = mismatch(*chosen.front(), text);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = missing(*chosen.front());
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
