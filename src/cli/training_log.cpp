#include "src/cli/training_log.hpp"

#include <nlohmann/json.hpp>

namespace arenite::cli {

using nlohmann::ordered_json;

void TrainingLog::line(const std::string& text) {
  file_.write(text + "\n");
  file_.commit();
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

void TrainingLog::end(const End& end) {
  ordered_json json{{"event", "end"},
                    {"test_accuracy", end.test_accuracy},
                    {"weights_sha256", end.weights_sha256},
                    {"steps_per_second", end.steps_per_second},
                    {"first_step_seconds", nullptr},
                    {"peak_rss", end.peak_rss},
                    {"heap_calls", nullptr}};
  if (end.first_step_seconds) json["first_step_seconds"] = *end.first_step_seconds;
  if (end.heap_calls) json["heap_calls"] = *end.heap_calls;
  line(json.dump());
}

}  // namespace arenite::cli
