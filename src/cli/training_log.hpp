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
  /// {"event": "end", "test_accuracy": …, "weights_sha256": …, "steps_per_second": …, "peak_rss":
  /// bytes, "heap_calls": in steps, null where nobody counted them}. Throws Error likewise.
  void end(double test_accuracy, const std::string& sha256, double steps_per_second, long peak_rss,
           std::optional<long> heap_calls);

 private:
  void line(const std::string& text);

  AtomicFile file_;
};

}  // namespace arenite::cli
