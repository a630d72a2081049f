// A subcommand of `arenite`: the parser of its options, and all that help and completions say of
// it.
#pragma once

#include "src/cli/exit_status.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace arenite::cli {

/// What a shell completes an option's value with: these words, names of files, both, or nothing.
struct Offer {
  std::vector<std::string> words = {};
  bool files = false;
};

struct Example {
  std::string line;  ///< without "arenite"
  std::string says;
};

struct StatusMeaning {
  ExitStatus status;
  std::string means;
};

class Command : public CLI::App {
 public:
  /// Of --help, and of whatever is added under no other.
  static constexpr const char* last_heading = "Options";

  /// "train", "Train a network on images and report its test accuracy".
  Command(std::string name, std::string summary);

  std::vector<std::string> about;  ///< paragraphs below the summary
  std::vector<Example> examples;
  std::vector<StatusMeaning> statuses;
  std::string read_on;  ///< pages that have more
  /// Returns the exit status, or throws what main() knows one for.
  std::function<int()> run;

  /// Options that are added from now on stand below this heading.
  void heading(const std::string& text);

  CLI::Option* add_path(const std::string& name, std::string& into, const std::string& kind,
                        const std::string& help);
  /// One of these names.
  CLI::Option* add_choice(const std::string& name, std::string& into,
                          const std::vector<std::string>& names, const std::string& help);
  /// Takes no value.
  CLI::Option* add_switch(const std::string& name, bool& into, const std::string& help);

  void offer(const CLI::Option* option, Offer offer) { offers_[option] = std::move(offer); }
  const Offer& offered(const CLI::Option* option) const;

 private:
  std::map<const CLI::Option*, Offer> offers_;
};

/// Adds the command to the parser, which owns it.
Command& add_command(CLI::App& app, std::string name, std::string summary);
/// The subcommands of a parser in their order.
std::vector<const Command*> commands_of(const CLI::App& app);
/// The one that the command line names, after it was read.
const Command& chosen_command(const CLI::App& app);

}  // namespace arenite::cli
