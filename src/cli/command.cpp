#include "src/cli/command.hpp"

#include "src/cli/checks.hpp"
#include "src/cli/help.hpp"

#include <memory>
#include <utility>

namespace arenite::cli {

Command::Command(std::string name, std::string summary)
    : CLI::App(std::move(summary), std::move(name)) {
  formatter(std::make_shared<Help>());
  heading(last_heading);
  set_help_flag("-h,--help", "print this");
}

void Command::heading(const std::string& text) { option_defaults()->group(text); }

CLI::Option* Command::add_path(const std::string& name, std::string& into, const std::string& kind,
                               const std::string& help) {
  CLI::Option* option = add_option(name, into, help)->type_name(kind)->check(a_path());
  offer(option, {.files = true});
  return option;
}

CLI::Option* Command::add_choice(const std::string& name, std::string& into,
                                 const std::vector<std::string>& names, const std::string& help) {
  CLI::Option* option = add_option(name, into, help)->type_name("NAME")->check(one_of(names));
  offer(option, {.words = names});
  return option;
}

CLI::Option* Command::add_switch(const std::string& name, bool& into, const std::string& help) {
  return add_flag(name, into, help)->disable_flag_override();
}

const Offer& Command::offered(const CLI::Option* option) const {
  static const Offer nothing;
  const auto found = offers_.find(option);
  return found == offers_.end() ? nothing : found->second;
}

Command& add_command(CLI::App& app, std::string name, std::string summary) {
  auto command = std::make_shared<Command>(std::move(name), std::move(summary));
  app.add_subcommand(command);
  return *command;
}

std::vector<const Command*> commands_of(const CLI::App& app) {
  std::vector<const Command*> all;
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>()))
    all.push_back(dynamic_cast<const Command*>(command));
  return all;
}

const Command& chosen_command(const CLI::App& app) {
  return dynamic_cast<const Command&>(*app.get_subcommands().front());
}

}  // namespace arenite::cli
