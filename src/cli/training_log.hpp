// The `--log` file: one JSON object a line, complete lines only, each on disk when its epoch ends.
#pragma once

#include <arenite/train/trainer.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

namespace arenite::cli {

class TrainingLog {
 public:
  /// Creates or truncates the file. Throws Error when it cannot.
  explicit TrainingLog(std::filesystem::path file);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  /// {"event": "epoch", "epoch": 0, "samples": trained, "loss": …, "train_accuracy": …,
  ///  "test_accuracy": …, "seconds": …, "samples_per_second": …, "eval_seconds": …}. Throws Failure
  /// on a full disk.
  void epoch(const train::EpochReport& report);
  /// {"event": "end", "test_accuracy": …, "weights_sha256": …, "steps_per_second": …, "peak_rss":
  /// bytes}.
  void end(double test_accuracy, const std::string& sha256, double steps_per_second, long peak_rss);

 private:
  void line(const std::string& text);

  std::filesystem::path file_;
  std::FILE* stream_ = nullptr;
};

}  // namespace arenite::cli
