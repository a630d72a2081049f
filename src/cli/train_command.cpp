#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/train/trainer.hpp>

#include "src/base/perf_map.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/count_heap.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/plan_files.hpp"
#include "src/cli/process_age.hpp"
#include "src/cli/progress.hpp"
#include "src/cli/train_arguments.hpp"
#include "src/cli/training_log.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace arenite::cli {
namespace {

long peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

std::string samples_text(const data::ImageData& data, const data::Split& train) {
  return fmt::format("{} ({}): {} training and {} test images of {}", data.name, data.origin,
                     train.count, data.test.count, to_string(data.shape()));
}

/// The files to write, all of them made before the long work begins, so that a wrong path costs
/// nothing.
struct Outputs {
  PlanFiles plans;
  std::optional<TrainingLog> log;

  explicit Outputs(const TrainArguments& a) : plans(a.plan_svg, a.plan_json) {
    if (!a.log.empty()) log.emplace(a.log);
  }
};

/// One would replace the other.
void refuse_shared_outputs(const TrainArguments& a) {
  namespace fs = std::filesystem;
  struct Output {
    const char* option;
    fs::path path;
  };
  std::vector<Output> seen;
  for (const Output& output :
       {Output{"--log", a.log}, {"--plan-svg", a.plan_svg}, {"--plan-json", a.plan_json}}) {
    std::error_code error;
    if (output.path.empty() || fs::is_other(output.path, error)) continue;
    const fs::path whole = fs::weakly_canonical(fs::absolute(followed(output.path)), error);
    for (const Output& other : seen) {
      if (error || other.path != whole) continue;
      fail({.found = fmt::format("{} and {} name the same file '{}'", other.option, output.option,
                                 output.path.string()),
            .expected = "a file of its own for each"});
    }
    seen.push_back({output.option, whole});
  }
}

/// What steps asked of the system: the promise is nothing.
std::string costs_text(const train::StepCosts& costs, const runtime::Counters& before) {
  const runtime::Counters now = runtime::counters();
  std::string text =
      fmt::format("handles registered after warm-up: {}, blocks: {}, pins: {}\n",
                  now.handles - before.handles, now.blocks - before.blocks, now.pins - before.pins);
  if (!costs.heap_calls) return text + "heap calls: not counted (--count-heap counts them)\n";
  return text + fmt::format(
                    "heap calls in {} training and {} evaluation steps after warm-up: {}, "
                    "mappings: {}\n",
                    costs.training_steps, costs.evaluation_steps, *costs.heap_calls,
                    *costs.map_calls);
}

/// For perf, if it watches. The profile does without.
void name_kernels() {
  try {
    perf_map().turn_on();
  } catch (const Failure& failure) {
    std::cerr << "arenite: perf will not know the names of kernels: " << failure.what() << '\n';
  }
}

int nothing_trained() {
  std::cout << "interrupted before the first step: nothing was trained\n";
  return exit_interrupted;
}

}  // namespace

int run_train(const TrainArguments& a) {
  if (a.count_heap) count_heap();
  catch_interrupts();
  refuse_shared_outputs(a);
  Outputs outputs(a);
  const nn::NamedModel& model = nn::model(a.model);
  const optim::Optimizer optimizer =
      optim::sgd({.lr = a.lr, .momentum = a.momentum, .weight_decay = a.weight_decay});
  const data::ImageData data = data::find(a.dataset.empty() ? model.dataset : a.dataset, a.data);
  const data::Split train_split = a.limit > 0 ? data.train.first(a.limit) : data.train;
  if (interrupted()) return nothing_trained();

  if (a.profile) name_kernels();
  runtime::Session session({.workers = a.workers, .device = a.device, .device_memory = a.memory});
  train::Trainer trainer(session, model.layers, data.shape(),
                         {.batch = a.batch,
                          .optimizer = optimizer,
                          .init = {.seed = a.seed, .range = a.init},
                          .lanes = a.lanes,
                          .layout = a.arenas,
                          .fuse = a.fuse,
                          .compute = a.compute,
                          .cuda_graphs = a.cuda_graphs,
                          .resident_data = a.resident_data});
  if (interrupted()) return nothing_trained();
  trainer.prepare(&train_split, &data.test);
  if (interrupted()) return nothing_trained();

  std::cout << samples_text(data, train_split) << '\n';
  if (a.limit > data.train.count) {
    std::cout << fmt::format("--limit {}: the set has only {} training images; all are used\n",
                             a.limit, data.train.count);
  }
  std::cout << fmt::format("model {}: {}; batch {} in {} {}; {}{}\n", model.name, model.summary,
                           a.batch, trainer.lanes(), trainer.lanes() == 1 ? "lane" : "lanes",
                           session.description(),
                           a.compute == runtime::Compute::float32
                               ? ""
                               : fmt::format("; products in {}", runtime::to_string(a.compute)))
            << trainer.plan();
  if (a.explain) trainer.explain(std::cout);
  if (a.draw) {
    for (const plan::Plan& packing : trainer.step_plan().packings)
      std::cout << plan::draw_text(packing);
  }
  flush_output();
  outputs.plans.write(trainer.step_plan());

  ProgressDisplay display(a.epochs);
  double training_seconds = 0;
  const runtime::Counters before = runtime::counters();
  train::FitOptions fit{
      .epochs = a.epochs, .shuffle = a.shuffle, .seed = a.seed, .validation = &data.test};
  fit.stop = &interrupted();
  if (a.profile) fit.profile_steps = profiled_steps;
  if (display.on_terminal())
    fit.on_progress = [&](const train::Progress& progress) { display.show(progress); };
  std::optional<double> first_step;
  fit.on_first_step = [&] {
    first_step = process_age();
    if (first_step) display.first_step(*first_step);
  };
  fit.on_epoch = [&](const train::EpochReport& report) {
    display.epoch_done(report);
    training_seconds += report.train.seconds;
    if (outputs.log) outputs.log->epoch(report);
  };
  const train::EpochReport last = trainer.fit(train_split, fit);

  const bool cut_short = interrupted();
  if (cut_short && trainer.steps() == 0) return nothing_trained();
  if (cut_short) std::cout << "\ninterrupted: training ended after the current step\n";
  const double accuracy =
      last.validation ? last.validation->accuracy : trainer.evaluate(data.test).accuracy;
  const double rate =
      training_seconds > 0 ? static_cast<double>(trainer.steps()) / training_seconds : 0;
  const std::string sha256 = trainer.weights_sha256();
  if (outputs.log)
    outputs.log->end({.test_accuracy = accuracy,
                      .weights_sha256 = sha256,
                      .steps_per_second = rate,
                      .first_step_seconds = first_step,
                      .peak_rss = peak_rss_bytes(),
                      .heap_calls = trainer.costs().heap_calls});
  if (a.profile && last.profile) {
    std::cout << *last.profile;
  } else if (a.profile) {
    std::cout << "no profile: training ended before the last epoch, whose steps it is made of\n";
  }
  std::cout << fmt::format("{} steps, {:.1f} steps/s; peak RSS {:.1f} MiB\n", trainer.steps(), rate,
                           static_cast<double>(peak_rss_bytes()) / (1024 * 1024))
            << costs_text(trainer.costs(), before)
            << fmt::format("test accuracy: {:.2f} %\n", accuracy * 100)
            << "weights sha256: " << sha256 << '\n';
  return interrupted() ? exit_interrupted : exit_ok;
}

}  // namespace arenite::cli
