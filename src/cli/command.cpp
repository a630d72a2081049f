#include "src/cli/command.hpp"

#include "src/cli/checks.hpp"

#include <utility>

namespace arenite::cli {

Command::Command(std::string its_name, std::string its_summary, const std::string& program)
    : name(std::move(its_name)),
      called(program.empty() ? name : program + " " + name),
      summary(std::move(its_summary)) {
  add({.names = {"-h", "--help"}, .help = "print this"});
}

Option* Command::add(Option option) {
  option.heading = heading_;
  return &options.emplace_back(std::move(option));
}

Option* Command::add_path(const std::string& option, std::string& into, const std::string& kind,
                          const std::string& help) {
  return add({.names = {option},
              .help = help,
              .kind = kind,
              .rule = a_path(),
              .take = [&into](const std::string& text) { into = text; },
              .offer = {.files = true}});
}

Option* Command::add_choice(const std::string& option, std::string& into,
                            const std::vector<std::string>& names, const std::string& help) {
  return add({.names = {option},
              .help = help,
              .kind = "NAME",
              .rule = one_of(names),
              .take = [&into](const std::string& text) { into = text; },
              .offer = {.words = names}});
}

Option* Command::add_choices(const std::string& option, std::vector<std::string>& into,
                             const std::vector<std::string>& names, const std::string& help) {
  return add({.names = {option},
              .help = help,
              .kind = "NAME",
              .rule = one_of(names),
              .take = [&into](const std::string& text) { into.push_back(text); },
              .repeats = true,
              .offer = {.words = names}});
}

Option* Command::add_switch(const std::string& option, bool& into, const std::string& help) {
  return add(
      {.names = {option}, .help = help, .take = [&into](const std::string&) { into = true; }});
}

Command& add_command(Command& app, std::string name, std::string summary) {
  return app.subcommands.emplace_back(std::move(name), std::move(summary), app.name);
}

}  // namespace arenite::cli
