// Training in words, on standard output.
#pragma once

#include "src/cli/progress.hpp"
#include "src/cli/training_report.hpp"

namespace arenite::cli {

class WordsReport : public TrainingReport {
 public:
  explicit WordsReport(int epochs) : display_(epochs) {}

  void start(const TrainingStart& start) override;
  void first_step(double seconds) override { display_.first_step(seconds); }
  bool shows_progress() const override { return display_.on_terminal(); }
  void progress(const train::Progress& progress) override { display_.show(progress); }
  void epoch(const train::EpochReport& report) override { display_.epoch_done(report); }
  void interrupted(long steps) override;
  void profile(const std::optional<runtime::Profile>& profile) override;
  void end(const TrainingEnd& end) override;

 private:
  ProgressDisplay display_;
};

}  // namespace arenite::cli
