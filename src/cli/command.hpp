// A program or a subcommand of one: its options, and all that help, completions and messages say of
// it. Only command_line.cpp knows the parser that reads them.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace arenite::cli {

/// How `arenite` ends, and its benchmarks.
enum ExitStatus : int {
  exit_ok = 0,
  exit_failure = 1,    ///< a run failed although its input was right; a check of `doctor` fails
  exit_bad_input = 2,  ///< wrong arguments, files or data, and files that cannot be written
  exit_capacity = 3,   ///< a plan needs more bytes than it may have
  exit_interrupted = 130,
};

/// What a shell completes an option's value with: these words, names of files, both, or nothing.
struct Offer {
  std::vector<std::string> words = {};
  bool files = false;
};

/// What a text has to be, and why one is not: "'TEXT'; expected WHAT", or nothing.
struct Rule {
  std::string what = {};
  std::function<std::string(const std::string& text)> refuse = {};
};

/// Thrown by Option::take: texts that are right by themselves, but not together.
struct Refusal {
  std::string why;
};

/// An option, or an argument.
struct Option {
  std::vector<std::string> names;  ///< "-h", "--help"; of an argument "INPUT"
  std::string help;
  std::string kind = {};  ///< of its value, as in "FILE"; empty: it takes none
  Rule rule = {};
  std::function<void(const std::string& text)> take = {};  ///< each text, in their order
  bool is_required = false;
  bool repeats = false;
  std::string shown_default = {};
  std::vector<std::string> excluded = {};  ///< what must not be given together with it
  Offer offer = {};
  std::string heading = {};                   ///< below which the help lists it
  std::function<std::string()> instead = {};  ///< what is printed, and no command runs

  const std::string& name() const { return names.back(); }
  bool is_argument() const { return !name().starts_with('-'); }
  bool takes_value() const { return !kind.empty(); }
  bool takes_folder() const { return kind == "FOLDER"; }

  Option* type_name(std::string text) { return kind = std::move(text), this; }
  Option* default_str(std::string text) { return shown_default = std::move(text), this; }
  Option* required() { return is_required = true, this; }
  Option* offers(std::vector<std::string> words) { return offer.words = std::move(words), this; }
};

struct Example {
  std::string line;  ///< without "arenite"
  std::string says;
};

struct StatusMeaning {
  ExitStatus status;
  std::string means;
};

/// What each of them is called.
template <class Items>
std::vector<std::string> names_of(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) names.emplace_back(item.name);
  return names;
}

class Command {
 public:
  /// Of --help, and of whatever is added under no other.
  static constexpr const char* last_heading = "Options";

  /// "train", "Train a network on images and report its test accuracy"; of a program's, its name.
  Command(std::string name, std::string summary, const std::string& program = {});
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const std::string name;
  const std::string called;  ///< "arenite train"
  const std::string summary;
  std::vector<std::string> about;  ///< paragraphs below the summary
  std::vector<Example> examples;
  std::vector<StatusMeaning> statuses;
  std::string read_on;  ///< pages that have more
  /// Names of options that it does not have, and what is written in their place.
  std::map<std::string, std::string, std::less<>> elsewhere;
  /// Returns the exit status, or throws what run_command() knows one for.
  std::function<int()> run;
  std::list<Option> options;       ///< --help is the first
  std::list<Command> subcommands;  ///< one of which has to be given, if there are any

  /// Options that are added from now on stand below this heading.
  void heading(const std::string& text) { heading_ = text; }

  /// The command owns it.
  Option* add(Option option);
  Option* add_path(const std::string& option, std::string& into, const std::string& kind,
                   const std::string& help);
  /// One of these names.
  Option* add_choice(const std::string& option, std::string& into,
                     const std::vector<std::string>& names, const std::string& help);
  /// It may be given again, and each time one of them.
  Option* add_choices(const std::string& option, std::vector<std::string>& into,
                      const std::vector<std::string>& names, const std::string& help);
  /// Takes no value.
  Option* add_switch(const std::string& option, bool& into, const std::string& help);

 private:
  std::string heading_ = last_heading;
};

/// Adds a subcommand, which `app` owns.
Command& add_command(Command& app, std::string name, std::string summary);

}  // namespace arenite::cli
