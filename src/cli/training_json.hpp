// Training as JSON lines: the vocabulary of `--json` and `--log` (docs/command-line.md).
#pragma once

#include "src/base/atomic_file.hpp"
#include "src/cli/training_report.hpp"

#include <filesystem>
#include <string>
#include <utility>

namespace arenite::cli {

/// `--json`: an object a line on standard output, one for each event.
class JsonReport : public TrainingReport {
 public:
  /// `tested`: by which images epochs are, "test" or "validation".
  explicit JsonReport(std::string tested) : tested_(std::move(tested)) {}

  void start(const TrainingStart& start) override;  ///< "data", "model", "plan"
  void first_step(double seconds) override;
  void epoch(const train::EpochReport& report) override;
  void resumed(const std::string& file, const train::Trainer& trainer,
               const std::string& differs) override;
  void saved(const std::string& file, const train::Trainer& trainer) override;
  void interrupted(long steps) override;
  void profile(const std::optional<runtime::Profile>& profile) override;
  void end(const TrainingEnd& end) override;

 private:
  std::string tested_;
};

/// `--log`: the lines of epochs and of the end, each written when it is so far; complete lines
/// only.
class TrainingLog {
 public:
  /// Makes sure that the file can be written; an older one of this name stays until the first line
  /// is complete. Throws Error when it cannot.
  TrainingLog(const std::filesystem::path& file, std::string tested)
      : path_(file), file_(file, "log '" + file.string() + "'"), tested_(std::move(tested)) {}

  /// Keeps what the file said of the first so many epochs, which are not trained again.
  void keep(int epochs);
  /// These throw Error on a full disk, with the lines before whole.
  void epoch(const train::EpochReport& report);
  void end(const TrainingEnd& end);

 private:
  void line(const std::string& text);

  std::filesystem::path path_;
  AtomicFile file_;
  std::string tested_;
};

}  // namespace arenite::cli
