#include "src/cli/training_json.hpp"

#include <arenite/error.hpp>

#include "src/cli/checks.hpp"
#include "src/cli/output.hpp"
#include "src/cli/train_arguments.hpp"
#include "src/plan/json_field.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <fstream>

namespace arenite::cli {
namespace {

void print(const Json& json) {
  std::fputs(line_of(json).c_str(), stdout);
  flush_output();
}

Json data_event(const TrainingStart& s) {
  const Shape shape = s.data.shape();
  return {{"event", "data"},
          {"name", s.data.name},
          {"origin", s.data.origin},
          {"training_images", s.train.count},
          {"test_images", s.data.test.count},
          {"image", Json::list(shape[0], shape[1], shape[2])}};
}

Json model_event(const TrainingStart& s) {
  const TrainArguments& a = s.arguments;
  const optim::Optimizer& optimizer = s.optimizer;
  const auto numbers_of = [](const graph::Attributes& attributes) {
    Json numbers = Json::object();
    for (const auto& [name, value] : attributes.items()) numbers[name] = attributes.real(name);
    return numbers;
  };
  const graph::Attributes all = optimizer.optimizer->with_defaults(optimizer.attributes);
  const auto number = [&](const char* name) {
    return all.has(name) ? Json(all.real(name)) : Json();
  };
  Json groups = Json::list();
  for (const graph::ParameterGroup& group : optimizer.groups) {
    groups.push_back({{"names", group.names},
                      {"rank", group.most_rank ? Json(*group.most_rank) : Json()},
                      {"rate", group.rate},
                      {"numbers", numbers_of(group.attributes)}});
  }
  Json spaces = Json::list();
  for (const Space& space : s.session.spaces()) spaces.push_back(to_string(space));
  return {{"event", "model"},
          {"name", s.model.name},
          {"summary", s.model.summary},
          {"batch", a.batch},
          {"shards", s.trainer.shards()},
          {"lanes", s.trainer.lanes()},
          {"at_once", s.trainer.shards_at_once()},
          {"epochs", a.epochs},
          {"optimizer", optimizer.optimizer->name},
          {"lr", as_written(static_cast<float>(optimizer.learning_rate))},
          {"momentum", number("momentum")},
          {"weight_decay", number("weight_decay")},
          {"numbers", numbers_of(all)},
          {"schedule", a.schedule.empty() ? Json() : Json(a.schedule)},
          {"clip_norm", optimizer.clip_norm},
          {"clip_value", optimizer.clip_value},
          {"groups", std::move(groups)},
          {"accumulate", a.accumulate},
          {"ema", a.ema ? Json(as_written(*a.ema)) : Json()},
          {"check_loss", a.check_loss},
          {"seed", a.seed},
          {"shuffle", a.shuffle},
          {"compute", runtime::to_string(a.compute)},
          {"kernels", a.kernels.empty() ? Json() : Json(a.kernels)},
          {"kernels_taken", a.kernels.empty() ? Json() : Json(s.trainer.chosen_kernels())},
          {"workers", s.session.workers()},
          {"spaces", std::move(spaces)},
          {"runtime", s.session.description()}};
}

Json plan_event(const train::Trainer& trainer) {
  const plan::StepPlan& plan = trainer.step_plan();
  Json arenas = Json::list(), blocks = Json::list();
  for (const plan::ArenaPlan& arena : plan.arenas) {
    arenas.push_back(plan::json_of(arena));
  }
  std::int64_t total = 0, peak = 0;
  for (const runtime::BlockUse& block : trainer.blocks()) {
    blocks.push_back({{"block", block.name}, {"bytes", block.bytes}, {"pinned", block.pinned}});
    total += block.bytes;
  }
  for (const plan::Plan& packing : plan.packings) peak += packing.peak;
  return {{"event", "plan"},
          {"layout", plan::to_string(plan.layout)},
          {"arenas", std::move(arenas)},
          {"blocks", std::move(blocks)},
          {"bytes", total},
          {"peak", peak},
          {"lower_bound", plan.lower_bound},
          {"optimal", plan.optimal},
          {"separate", plan.separate}};
}

Json epoch_event(const train::EpochReport& report, const std::string& tested) {
  const train::Metrics& m = report.train;
  Json json{{"event", "epoch"},
            {"epoch", report.epoch},
            {"samples", m.samples},
            {"loss", m.loss},
            {"train_accuracy", m.accuracy}};
  if (report.validation) {
    json[tested + "_accuracy"] = report.validation->accuracy;
    json[tested + "_loss"] = report.validation->loss;
  }
  json["seconds"] = m.seconds;
  json["samples_per_second"] = m.seconds > 0 ? static_cast<double>(m.samples) / m.seconds : 0.0;
  if (report.validation) json["eval_seconds"] = report.validation->seconds;
  return json;
}

Json end_event(const TrainingEnd& end) {
  return {{"event", "end"},
          {"test_accuracy", end.test_accuracy},
          {"test_loss", end.test_loss},
          {"weights_sha256", end.weights_sha256},
          {"stopped_early", end.stopped_early},
          {"steps", end.steps},
          {"steps_per_second", end.steps_per_second},
          {"first_step_seconds", or_null(end.first_step_seconds)},
          {"peak_rss", end.peak_rss},
          {"handles", end.since.handles},
          {"blocks", end.since.blocks},
          {"pins", end.since.pins},
          {"heap_calls", or_null(end.costs.heap_calls)},
          {"map_calls", or_null(end.costs.map_calls)}};
}

}  // namespace

void JsonReport::start(const TrainingStart& start) {
  print(data_event(start));
  print(model_event(start));
  print(plan_event(start.trainer));
}

void JsonReport::first_step(double seconds) {
  print({{"event", "first_step"}, {"seconds", seconds}});
}

void JsonReport::epoch(const train::EpochReport& report) { print(epoch_event(report, tested_)); }

void JsonReport::resumed(const std::string& file, const train::Trainer& trainer,
                         const std::string& differs) {
  print({{"event", "resumed"},
         {"file", file},
         {"steps", trainer.steps()},
         {"epochs", trainer.epochs()},
         {"differs", differs}});
}

void JsonReport::saved(const std::string& file, const train::Trainer& trainer) {
  print({{"event", "saved"},
         {"file", file},
         {"steps", trainer.steps()},
         {"epochs", trainer.epochs()}});
}

void JsonReport::interrupted(long steps) { print({{"event", "interrupted"}, {"steps", steps}}); }

void JsonReport::profile(const std::optional<runtime::Profile>& profile) {
  Json json{{"event", "profile"}};
  json.update(profile ? parse_json(to_json(*profile)) : Json{{"steps", 0}});
  print(json);
}

void JsonReport::end(const TrainingEnd& end) { print(end_event(end)); }

void TrainingLog::epoch(const train::EpochReport& report) {
  line(line_of(epoch_event(report, tested_)));
}

void TrainingLog::end(const TrainingEnd& end) { line(line_of(end_event(end))); }

void TrainingLog::keep(int epochs) {
  if (!std::filesystem::is_regular_file(path_)) return;
  std::ifstream before(path_);
  for (std::string text; std::getline(before, text);) {
    try {
      const Json event = parse_json(text);
      if (event.at("event").text() == "epoch" && event.at("epoch").integer() < epochs)
        file_.write(text + '\n');
    } catch (const Error&) {
      // A line of something else.
    }
  }
}

void TrainingLog::line(const std::string& text) {
  file_.write(text);
  file_.commit();
}

}  // namespace arenite::cli
