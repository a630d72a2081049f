#include "src/cli/checkpoints.hpp"

#include <arenite/error.hpp>

#include "src/base/atomic_file.hpp"
#include "src/cli/checks.hpp"
#include "src/cli/output.hpp"

#include <iostream>
#include <optional>
#include <utility>

namespace arenite::cli {
namespace {

/// "30", "100steps", "2epochs"
std::optional<SaveEvery> every_of(const std::string& text) {
  std::size_t digits = text.find_first_not_of("0123456789.");
  if (digits == std::string::npos) digits = text.size();
  const std::string number = text.substr(0, digits), unit = text.substr(digits);
  if (unit.empty() || unit == "s") {
    const auto seconds = number_of_at_least_0(number);
    return seconds && *seconds > 0 ? std::optional(SaveEvery{.seconds = *seconds}) : std::nullopt;
  }
  const auto count = whole_number(number, 1, 1'000'000'000);
  if (!count) return std::nullopt;
  if (unit == "steps" || unit == "step") return SaveEvery{.steps = static_cast<long>(*count)};
  if (unit == "epochs" || unit == "epoch") return SaveEvery{.epochs = static_cast<int>(*count)};
  return std::nullopt;
}

void refuse_together(bool both, const char* found, const char* expected) {
  if (both) fail({.found = found, .expected = expected});
}

}  // namespace

void add_checkpoints(Command& train, CheckpointArguments& a) {
  train.heading("What is saved");
  train.add_path("--save", a.save, "FILE",
                 "save the run to this file at the end, and when it is interrupted: all that a run "
                 "needs to go on (docs/checkpoints.md)");
  add_option<SaveEvery>(
      train, "--save-every", a.every, every_of,
      "a time in seconds above 0, or a number of steps or epochs, as in 30, 500steps, 2epochs",
      "save it every so many seconds, steps (500steps) or epochs (2epochs) too")
      ->type_name("WHEN");
  train.add_path("--save-best", a.save_best, "FILE",
                 "save the run to this file behind each epoch that tests better than all before "
                 "(with a lower loss)");
  train.add_path("--resume", a.resume, "FILE",
                 "go on with the run that this file was saved of, until --epochs are done in all: "
                 "the end is that of a run that was never interrupted, to the bit");
  train.add_path("--resume-weights", a.resume_weights, "FILE",
                 "begin a run of its own with the weights of this file");
  add_whole_number(train, "--early-stop", a.early_stop, 1, 1000000,
                   "end behind so many epochs in a row that test no better than one before");
}

Checkpoints::Checkpoints(const CheckpointArguments& arguments) : arguments_(arguments) {
  const CheckpointArguments& a = arguments;
  refuse_together(a.every.is_given() && a.save.empty(), "--save-every without --save",
                  "a file to save to");
  refuse_together(!a.resume.empty() && !a.resume_weights.empty(),
                  "--resume and --resume-weights together", "one of them");
  for (const auto& [option, file] : {std::pair("--save", a.save), {"--save-best", a.save_best}}) {
    if (!file.empty()) AtomicFile::check(file, std::string(option) + " '" + file + "'");
  }
}

std::string Checkpoints::resume(train::Trainer& trainer) const {
  const CheckpointArguments& a = arguments_;
  if (!a.resume_weights.empty()) trainer.take_weights(a.resume_weights);
  return a.resume.empty() ? std::string() : trainer.resume(a.resume);
}

void Checkpoints::report_resumed(const std::string& differs, const train::Trainer& trainer,
                                 TrainingReport& report) const {
  if (!arguments_.resume.empty()) report.resumed(arguments_.resume, trainer, differs);
}

void Checkpoints::add_to(train::FitOptions& fit, train::Trainer& trainer,
                         TrainingReport& report) const {
  fit.patience = arguments_.early_stop;
  const SaveEvery& every = arguments_.every;
  if (every.seconds == 0 && every.steps == 0) return;
  fit.save_seconds = every.seconds;
  fit.save_steps = every.steps;
  fit.on_save = [&] { save(arguments_.save, trainer, report); };
}

void Checkpoints::epoch(const train::EpochReport& epoch, train::Trainer& trainer,
                        TrainingReport& report) const {
  const CheckpointArguments& a = arguments_;
  if (epoch.best && !a.save_best.empty()) save(a.save_best, trainer, report);
  if (a.every.epochs > 0 && trainer.epochs() % a.every.epochs == 0) save(a.save, trainer, report);
}

void Checkpoints::end(train::Trainer& trainer, TrainingReport& report) const {
  if (!is_saved(trainer)) {
    trainer.save(arguments_.save, words_);
    saved_at_.emplace(trainer.steps(), trainer.epochs());
    report.saved(arguments_.save, trainer);
  }
  if (best_is_lost_)
    fail({.found = "--save-best '" + arguments_.save_best + "' was not saved",
          .expected = "a file that can be written"});
}

bool Checkpoints::is_saved(const train::Trainer& trainer) const {
  return arguments_.save.empty() || saved_at_ == std::pair(trainer.steps(), trainer.epochs());
}

Checkpoints::Rescue::~Rescue() {
  const std::string& file = checkpoints_.arguments_.save;
  const bool has_ended = std::uncaught_exceptions() == before_;
  if (has_ended || is_worthless || trainer_.steps() == steps_ || checkpoints_.is_saved(trainer_))
    return;
  try {
    trainer_.save(file, checkpoints_.words_);
    std::cerr << "arenite: saved to '" << file << "' before the end: step " << trainer_.steps()
              << '\n';
  } catch (const std::exception& error) {
    std::cerr << "arenite: not saved: " << error.what() << '\n';
  }
}

/// While it trains: the run is worth more than one file of it.
void Checkpoints::save(const std::string& file, train::Trainer& trainer,
                       TrainingReport& report) const {
  try {
    trainer.save(file, words_);
  } catch (const Error& error) {
    flush_output();
    std::cerr << "arenite: not saved, and training goes on: " << error.what() << '\n';
    if (file == arguments_.save_best) best_is_lost_ = true;
    return;
  }
  if (file == arguments_.save_best) best_is_lost_ = false;
  if (file == arguments_.save) saved_at_.emplace(trainer.steps(), trainer.epochs());
  report.saved(file, trainer);
}

}  // namespace arenite::cli
