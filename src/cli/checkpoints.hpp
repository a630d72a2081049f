// Files that `arenite train` saves runs to, and goes on from.
#pragma once

#include <arenite/train/trainer.hpp>

#include "src/cli/command.hpp"
#include "src/cli/training_report.hpp"

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace arenite::cli {

/// Between two saves; 0: not counted so.
struct SaveEvery {
  double seconds = 0;
  long steps = 0;
  int epochs = 0;

  bool is_given() const { return seconds > 0 || steps > 0 || epochs > 0; }
};

struct CheckpointArguments {
  std::string save, save_best;  ///< files; empty: none, and likewise the next two
  std::string resume, resume_weights;
  SaveEvery every;
  int early_stop = 0;  ///< epochs; 0: never
};

void add_checkpoints(Command& train, CheckpointArguments& arguments);

/// What is saved while a trainer trains. Borrows all.
class Checkpoints {
 public:
  /// Throws Error where a file cannot be written, and on options that make no sense together:
  /// before any work is done.
  explicit Checkpoints(const CheckpointArguments& arguments);

  /// Saves the run to `--save` where what follows its making throws: where reports cannot be
  /// written any more, say, what was trained is not lost.
  class Rescue {
   public:
    Rescue(Checkpoints& checkpoints, train::Trainer& trainer)
        : checkpoints_(checkpoints), trainer_(trainer) {}
    ~Rescue();
    Rescue(const Rescue&) = delete;
    Rescue& operator=(const Rescue&) = delete;

    bool is_worthless = false;  ///< a step has failed: its values may be half of it

   private:
    Checkpoints& checkpoints_;
    train::Trainer& trainer_;
    int before_ = std::uncaught_exceptions();
    long steps_ = trainer_.steps();
  };

  /// What files of the run say of it (words_of in saved_network.hpp).
  void say(SavedWords words) { words_ = std::move(words); }

  /// Goes on from a file, if one was named. Returns what may change bits (Trainer::resume).
  std::string resume(train::Trainer& trainer) const;
  void report_resumed(const std::string& differs, const train::Trainer& trainer,
                      TrainingReport& report) const;
  /// Asks a fit for what there is to save.
  void add_to(train::FitOptions& fit, train::Trainer& trainer, TrainingReport& report) const;
  void epoch(const train::EpochReport& epoch, train::Trainer& trainer,
             TrainingReport& report) const;
  /// What was trained; throws Error where it cannot be written.
  void end(train::Trainer& trainer, TrainingReport& report) const;

 private:
  void save(const std::string& file, train::Trainer& trainer, TrainingReport& report) const;
  bool is_saved(const train::Trainer& trainer) const;

  const CheckpointArguments& arguments_;
  SavedWords words_;
  /// Steps of the run when --save's file was written last, and epochs.
  mutable std::optional<std::pair<long, int>> saved_at_;
  mutable bool best_is_lost_ = false;  // the last time that --save-best was to be written
};

}  // namespace arenite::cli
