// Training in words, on standard output: a bar with rates and an ETA on a terminal, one plain line
// an epoch elsewhere.
#pragma once

#include "src/cli/training_report.hpp"

#include <string>

namespace arenite::cli {

class WordsReport : public TrainingReport {
 public:
  /// `tested`: by which images epochs are, "test" or "validation".
  WordsReport(int epochs, std::string tested);

  void start(const TrainingStart& start) override;
  void first_step(double seconds) override;
  bool shows_progress() const override { return terminal_; }
  void progress(const train::Progress& progress) override;
  void epoch(const train::EpochReport& report) override;
  void resumed(const std::string& file, const train::Trainer& trainer,
               const std::string& differs) override;
  void saved(const std::string& file, const train::Trainer& trainer) override;
  void interrupted(long steps) override;
  void profile(const std::optional<runtime::Profile>& profile) override;
  void end(const TrainingEnd& end) override;

 private:
  int epochs_;
  std::string tested_;
  bool terminal_;
};

}  // namespace arenite::cli
