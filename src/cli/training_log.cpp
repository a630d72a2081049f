#include <arenite/error.hpp>

#include "src/cli/training_log.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace arenite::cli {

using nlohmann::ordered_json;

TrainingLog::TrainingLog(std::filesystem::path file)
    : file_(std::move(file)), stream_(std::fopen(file_.c_str(), "w")) {
  if (!stream_) {
    fail({.found = std::string("cannot be created: ") + std::strerror(errno),
          .expected = "a writable file",
          .where = "log '" + file_.string() + "'"});
  }
}

TrainingLog::~TrainingLog() {
  if (stream_) std::fclose(stream_);
}

void TrainingLog::line(const std::string& text) {
  const long before = std::ftell(stream_);
  const bool written = std::fputs((text + "\n").c_str(), stream_) >= 0 && std::fflush(stream_) == 0;
  if (written) return;
  const int error = errno;
  // Readers never see half a line, whatever the disk did.
  if (before >= 0 && ftruncate(fileno(stream_), before) != 0) clearerr(stream_);
  throw Failure({.found = std::string("could not be written: ") + std::strerror(error),
                 .expected = "room for another line",
                 .where = "log '" + file_.string() + "'"});
}

void TrainingLog::epoch(const train::EpochReport& report) {
  const train::Metrics& m = report.train;
  ordered_json json{{"event", "epoch"},
                    {"epoch", report.epoch},
                    {"samples", m.samples},
                    {"loss", m.loss},
                    {"train_accuracy", m.accuracy}};
  if (report.validation) json["test_accuracy"] = report.validation->accuracy;
  json["seconds"] = m.seconds;
  json["samples_per_second"] = m.seconds > 0 ? static_cast<double>(m.samples) / m.seconds : 0.0;
  if (report.validation) json["eval_seconds"] = report.validation->seconds;
  line(json.dump());
}

void TrainingLog::end(double test_accuracy, const std::string& sha256, double steps_per_second,
                      long peak_rss) {
  line(ordered_json{{"event", "end"},
                    {"test_accuracy", test_accuracy},
                    {"weights_sha256", sha256},
                    {"steps_per_second", steps_per_second},
                    {"peak_rss", peak_rss}}
           .dump());
}

}  // namespace arenite::cli
