#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/json.hpp>
#include <arenite/train/trainer.hpp>

#include "src/cli/checks.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/progress.hpp"
#include "src/cli/training_log.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace arenite::cli {
namespace {

struct TrainArguments {
  std::string model = "cnn2";
  std::string dataset;  // empty: the model's own
  std::string data;
  int epochs = 10;
  std::int64_t batch = 64;
  float lr = 0.02f;
  float momentum = 0.9f;
  float weight_decay = 0;
  std::uint64_t seed = 1;
  int workers = 0;
  int lanes = 0;
  std::int64_t limit = 0;
  std::string shuffle = "on";
  std::string init = "default";
  std::string arenas = "overlay";
  std::string fuse = "on";
  std::string log;
  bool explain = false;
  bool draw = false;
  bool profile = false;
  std::string plan_svg, plan_json;
};

/// Enough for means; the records of more would outgrow the caches.
constexpr long profiled_steps = 1000;

std::atomic<bool> interrupted{false};

void on_interrupt(int /*signal*/) { interrupted.store(true, std::memory_order_relaxed); }

/// The first Ctrl-C ends training after the step under way; a second one ends the process.
void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

/// "default" or "uniform:A".
std::optional<float> parse_init(const std::string& text) {
  if (text == "default") return std::nullopt;
  constexpr std::string_view prefix = "uniform:";
  if (text.rfind(prefix, 0) == 0) {
    float range = 0;
    const char* begin = text.data() + prefix.size();
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, range);
    if (error == std::errc() && stop == end && std::isfinite(range) && range > 0) return range;
  }
  fail({.found = "--init " + text,
        .expected = "default, or uniform:A with a finite A above 0, as in uniform:0.1"});
}

long peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

std::string samples_text(const data::ImageData& data, const data::Split& train) {
  return fmt::format("{} ({}): {} training and {} test images of {}", data.name, data.origin,
                     train.count, data.test.count, to_string(data.shape()));
}

void write_pictures(const TrainArguments& arguments, const plan::StepPlan& plan) {
  // The layout `two` has a picture a block; the first keeps the plain name.
  for (std::size_t i = 0; i < plan.packings.size(); ++i) {
    const std::string suffix = i == 0 ? "" : "." + std::to_string(i);
    if (arguments.draw) std::cout << plan::draw_text(plan.packings[i]);
    if (!arguments.plan_svg.empty()) plan::draw(plan.packings[i], arguments.plan_svg + suffix);
    if (!arguments.plan_json.empty())
      plan::write_json(plan.packings[i], arguments.plan_json + suffix);
  }
}

int run_train(const TrainArguments& a) {
  const auto range = parse_init(a.init);
  const nn::NamedModel& model = nn::model(a.model);
  const plan::ArenaLayout layout = plan::parse_arena_layout(a.arenas);
  const optim::Optimizer optimizer =
      optim::sgd({.lr = a.lr, .momentum = a.momentum, .weight_decay = a.weight_decay});
  const data::ImageData data = data::find(a.dataset.empty() ? model.dataset : a.dataset, a.data);
  const data::Split train_split = a.limit > 0 ? data.train.first(a.limit) : data.train;
  // Opened before the long work begins, so that a wrong path costs nothing.
  std::unique_ptr<TrainingLog> log;
  if (!a.log.empty()) log = std::make_unique<TrainingLog>(a.log);

  catch_interrupt();
  runtime::Session session({.workers = a.workers});
  train::Trainer trainer(session, model.layers, data.shape(),
                         {.batch = a.batch,
                          .optimizer = optimizer,
                          .init = {.seed = a.seed, .range = range},
                          .lanes = a.lanes,
                          .layout = layout,
                          .fuse = a.fuse == "on"});
  trainer.prepare(&train_split, &data.test);

  std::cout << samples_text(data, train_split) << '\n';
  if (a.limit > data.train.count) {
    std::cout << fmt::format("--limit {}: the set has only {} training images; all are used\n",
                             a.limit, data.train.count);
  }
  std::cout << fmt::format("model {}: {}; batch {} in {} {}; {}\n", model.name, model.summary,
                           a.batch, trainer.lanes(), trainer.lanes() == 1 ? "lane" : "lanes",
                           session.description())
            << trainer.plan();
  if (a.explain) trainer.explain(std::cout);
  write_pictures(a, trainer.step_plan());
  std::cout << std::flush;

  ProgressDisplay display(a.epochs);
  double training_seconds = 0;
  const long handles_before = runtime::counters().handles;
  train::FitOptions fit{
      .epochs = a.epochs, .shuffle = a.shuffle == "on", .seed = a.seed, .validation = &data.test};
  fit.stop = &interrupted;
  if (a.profile) fit.profile_steps = profiled_steps;
  if (display.on_terminal())
    fit.on_progress = [&](const train::Progress& progress) { display.show(progress); };
  fit.on_epoch = [&](const train::EpochReport& report) {
    display.epoch_done(report);
    training_seconds += report.train.seconds;
    if (log) log->epoch(report);
  };
  const train::EpochReport last = trainer.fit(train_split, fit);

  const bool cut_short = interrupted.load();
  if (cut_short) std::cout << "\ninterrupted: training ended after the current step\n";
  const double accuracy =
      last.validation ? last.validation->accuracy : trainer.evaluate(data.test).accuracy;
  const double rate =
      training_seconds > 0 ? static_cast<double>(trainer.steps()) / training_seconds : 0;
  const std::string sha256 = trainer.weights_sha256();
  if (log) log->end(accuracy, sha256, rate, peak_rss_bytes());
  if (a.profile && last.profile) {
    std::cout << *last.profile;
  } else if (a.profile) {
    std::cout << "no profile: training ended before the last epoch, whose steps it is made of\n";
  }
  std::cout << fmt::format(
                   "{} steps, {:.1f} steps/s; handles registered after warm-up: {}; peak RSS "
                   "{:.1f} MiB\n",
                   trainer.steps(), rate, runtime::counters().handles - handles_before,
                   static_cast<double>(peak_rss_bytes()) / (1024 * 1024))
            << fmt::format("test accuracy: {:.2f} %\n", accuracy * 100)
            << "weights sha256: " << sha256 << '\n';
  return cut_short ? exit_interrupted : exit_ok;
}

std::string model_help() {
  std::string text = "network to train:";
  for (const nn::NamedModel& model : nn::models())
    text += "\n" + model.name + ": " + model.summary + "; meant for " + model.dataset;
  return text;
}

}  // namespace

Command add_train(CLI::App& app) {
  auto arguments = std::make_shared<TrainArguments>();
  TrainArguments& a = *arguments;
  CLI::App* train =
      app.add_subcommand("train", "Train a network on images and report its test accuracy");
  std::vector<std::string> models;
  for (const nn::NamedModel& model : nn::models()) models.push_back(model.name);
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  train->add_option("--model", a.model, model_help())->check(one_of(models))->capture_default_str();
  train
      ->add_option("--dataset", a.dataset,
                   "images to train on (else those the model is meant for); never replaced by "
                   "another set")
      ->check(one_of(data::names()));
  train
      ->add_option("--data", a.data,
                   "the data set's own folder (else $ARENITE_DATASETS/<dataset>, else the cache)")
      ->check(not_empty());
  train->add_option("--epochs", a.epochs, "passes over the training images")
      ->check(whole_number(0, 1000000))
      ->capture_default_str();
  train->add_option("--batch", a.batch, "samples of a step")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  train->add_option("--lr", a.lr, "learning rate")
      ->check(number_of_at_least_0())
      ->capture_default_str();
  train->add_option("--momentum", a.momentum, "of SGD")
      ->check(number_from_0_to_below_1())
      ->capture_default_str();
  train->add_option("--weight-decay", a.weight_decay, "of SGD")
      ->check(number_of_at_least_0())
      ->capture_default_str();
  train->add_option("--seed", a.seed, "of initial weights and shuffling")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  train->add_option("--workers", a.workers, "CPU workers (else $STARPU_NCPU, else one a core)")
      ->check(whole_number(1, 1024));
  train
      ->add_option("--lanes", a.lanes,
                   "shares of a batch that run in parallel (else chosen from the network)")
      ->check(whole_number(1, 64));
  train
      ->add_option("--limit", a.limit,
                   "use the first N training images only (all, if there are fewer)")
      ->check(whole_number(1, most));
  train->add_option("--shuffle", a.shuffle, "visit the images in a new order each epoch")
      ->check(one_of({"on", "off"}))
      ->capture_default_str();
  train->add_option("--init", a.init, "initial weights: default, or uniform:A for U(-A, A)")
      ->capture_default_str();
  train->add_option("--arenas", a.arenas, "overlay (one block) or two (forward and backward apart)")
      ->capture_default_str();
  train
      ->add_option("--fuse", a.fuse,
                   "do convolution, ReLU and max pooling in one go, which keeps one byte an output")
      ->check(one_of({"on", "off"}))
      ->capture_default_str();
  train->add_option("--log", a.log, "write JSON lines, one an epoch, to this file")
      ->check(not_empty());
  train->add_flag("--explain", a.explain, "list tasks, ops, handle classes and edges");
  train->add_flag("--draw", a.draw, "draw the step's memory plan as text");
  train->add_flag("--profile", a.profile,
                  fmt::format("say where the time of the last epoch's steps went (of the first {})",
                              profiled_steps));
  train->add_option("--plan-svg", a.plan_svg, "write the step's memory plan as a picture")
      ->check(not_empty());
  train->add_option("--plan-json", a.plan_json, "write the step's memory plan as JSON")
      ->check(not_empty());
  return [arguments] { return run_train(*arguments); };
}

}  // namespace arenite::cli
