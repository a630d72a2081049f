// The `--log` file: one JSON object a line, complete lines only, each written when its epoch ends.
#pragma once

#include <arenite/train/trainer.hpp>

#include "src/base/atomic_file.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace arenite::cli {

class TrainingLog {
 public:
  /// Makes sure that the file can be written; an older one of this name stays until the first line
  /// is complete. Throws Error when it cannot.
  explicit TrainingLog(const std::filesystem::path& file)
      : file_(file, "log '" + file.string() + "'") {}

  /// {"event": "epoch", "epoch": 0, "samples": trained, "loss": …, "train_accuracy": …,
  ///  "test_accuracy": …, "seconds": …, "samples_per_second": …, "eval_seconds": …}. Throws Error
  /// on a full disk, with the lines before whole.
  void epoch(const train::EpochReport& report);
  struct End {
    double test_accuracy = 0;
    std::string weights_sha256;
    double steps_per_second = 0;
    std::optional<double> first_step_seconds;  ///< from the process's start to the first step's end
    long peak_rss = 0;                         ///< bytes
    std::optional<long> heap_calls;            ///< in steps
  };
  /// {"event": "end", …}, with the names of End's fields and null for what is not known. Throws
  /// Error likewise.
  void end(const End& end);

 private:
  void line(const std::string& text);

  AtomicFile file_;
};

}  // namespace arenite::cli
