#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/plan/draw.hpp>
#include <arenite/plan/json.hpp>
#include <arenite/train/script.hpp>
#include <arenite/train/trainer.hpp>

#include "src/base/atomic_file.hpp"
#include "src/base/perf_map.hpp"
#include "src/base/process_start.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/count_heap.hpp"
#include "src/cli/image_samples.hpp"
#include "src/cli/interrupt.hpp"
#include "src/cli/output.hpp"
#include "src/cli/saved_network.hpp"
#include "src/cli/train_arguments.hpp"
#include "src/cli/training_json.hpp"
#include "src/cli/training_words.hpp"
#include "src/plan/json_field.hpp"
#include "src/runtime/environment.hpp"

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace arenite::cli {
namespace {

long peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// When this program's own code began, its libraries loaded.
const double loaded = since_boot();

/// Seconds since this process was started, loading of its libraries included; up to one of the
/// kernel's clock ticks (0.01 s) too many, never too few. None where /proc does not say.
std::optional<double> process_age() {
  // Longer than any loading: before that the process was another program, a script that built this
  // one and then became it (exec).
  constexpr double most_loading = 1;
  const std::optional<double> started = process_start();
  if (!started) return std::nullopt;
  return since_boot() - (loaded - *started > most_loading ? loaded : *started);
}

/// The pictures of `--plan-svg` and `--plan-json`.
class PlanFiles {
 public:
  /// An empty path: not wanted. Throws Error when a file cannot be made there.
  PlanFiles(const std::string& svg, const std::string& json) {
    add("--plan-svg", svg, plan::to_svg);
    add("--plan-json", json, [](const plan::Plan& packing) { return plan::to_json(packing); });
  }

  /// One of each a packing: the first has the plain name, others a number behind it. All of them
  /// are written before the first one gets its name. Throws Error, also on a full disk.
  void write(const plan::StepPlan& plan) {
    std::vector<std::unique_ptr<AtomicFile>> files;
    for (Kind& kind : kinds_) {
      // The layout `two` has a picture a block.
      for (std::size_t i = 0; i < plan.packings.size(); ++i) {
        std::string numbered = kind.path;
        if (i > 0) numbered += "." + std::to_string(i);
        files.push_back(i == 0 ? std::move(kind.first) : open(kind.option, numbered));
        files.back()->write(kind.text(plan.packings[i]));
      }
    }
    for (const auto& file : files) file->commit();
  }

 private:
  using Text = std::string (*)(const plan::Plan&);
  struct Kind {
    std::string option, path;
    Text text;
    std::unique_ptr<AtomicFile> first;
  };

  static std::unique_ptr<AtomicFile> open(const std::string& option, const std::string& path) {
    return std::make_unique<AtomicFile>(path, option + " '" + path + "'");
  }
  void add(const std::string& option, const std::string& path, Text text) {
    if (!path.empty()) kinds_.push_back({option, path, text, open(option, path)});
  }

  std::vector<Kind> kinds_;
};

std::unique_ptr<TrainingReport> make_report(const TrainArguments& a) {
  if (a.json) return std::make_unique<JsonReport>(tested_by(a));
  return std::make_unique<WordsReport>(a.epochs, tested_by(a));
}

/// No output may replace another or what is read, nor be replaced by the captures that are written
/// at the end. But for runs, which may be saved over what they go on from.
void refuse_shared_outputs(const TrainArguments& a) {
  // The layout `two` has a second plan, in a file of its own.
  const auto second = [&](const std::string& path) {
    return path.empty() || a.arenas != plan::ArenaLayout::two ? std::string() : path + ".1";
  };
  std::vector<NamedFile> files{{"--kernels", a.kernels},
                               {"--script", a.script},
                               {"--log", a.log},
                               {"--plan-svg", a.plan_svg},
                               {"--plan-svg", second(a.plan_svg)},
                               {"--plan-json", a.plan_json},
                               {"--plan-json", second(a.plan_json)},
                               {"ARENITE_TRACE", runtime::environment("ARENITE_TRACE")},
                               {"ARENITE_MEMORY", runtime::environment("ARENITE_MEMORY")},
                               {"--resume", a.checkpoints.resume},
                               {"--resume-weights", a.checkpoints.resume_weights}};
  refuse_shared_files(files);
  files.resize(files.size() - 2);
  files.push_back({"--save", a.checkpoints.save});
  files.push_back({"--save-best", a.checkpoints.save_best});
  refuse_shared_files(files);
}

/// For people, wherever the rest is for a program.
std::ostream& words(const TrainArguments& a) { return a.json ? std::cerr : std::cout; }

void show_plan(const TrainArguments& a, const train::Trainer& trainer) {
  if (a.explain) trainer.explain(words(a));
  if (!a.draw) return;
  for (const plan::Plan& packing : trainer.step_plan().packings)
    words(a) << plan::draw_text(packing);
}

/// For perf, if it watches. The profile does without.
void name_kernels() {
  try {
    perf_map().turn_on();
  } catch (const Failure& failure) {
    std::cerr << "arenite: perf will not know the names of kernels: " << failure.what() << '\n';
  }
}

runtime::Counters difference(const runtime::Counters& now, const runtime::Counters& before) {
  return {.handles = now.handles - before.handles,
          .blocks = now.blocks - before.blocks,
          .pins = now.pins - before.pins,
          .tasks = now.tasks - before.tasks};
}

/// What is trained, and how.
struct Subject {
  nn::NamedModel model;
  std::optional<train::Script> script;
  /// Of all steps there will be; and the batch that is taken unless another is asked for.
  std::function<optim::Optimizer(std::int64_t steps)> optimizer;
  std::int64_t batch = usual_batch;
};

Subject subject_of(const TrainArguments& a) {
  if (a.script.empty()) {
    optimizer_of(a, 1);  // what is wrong with it is said before data is read
    return {nn::model(a.model), {}, [&a](std::int64_t steps) { return optimizer_of(a, steps); }};
  }
  const train::Script script =
      train::read_script(plan::read_document(a.script, "a script"), a.script);
  const nn::NamedModel& usual = nn::model(TrainArguments().model);
  return {.model = {.name = a.script,
                    .summary = "a script",
                    .dataset = usual.dataset,
                    .image = usual.image,
                    .layers = {}},
          .script = script,
          .optimizer = [optimizer = script.optimizer](std::int64_t) { return optimizer; },
          .batch = script.is_known ? script.most : std::min(usual_batch, script.most)};
}

/// The first images, and those behind them that epochs are tested on.
std::pair<data::Split, data::Split> with_validation(const data::Split& all, float share) {
  if (all.count < 2) {
    fail({.found = fmt::format("--validation {} of {} image", as_written(share), all.count),
          .expected = "2 images or more"});
  }
  const auto wanted = std::llround(static_cast<double>(share) * static_cast<double>(all.count));
  const std::int64_t kept = std::clamp<std::int64_t>(wanted, 1, all.count - 1);
  data::Split behind = all;
  behind.count = kept;
  behind.images = all.images.last(static_cast<std::size_t>(kept * all.image_bytes()));
  behind.labels = all.labels.last(static_cast<std::size_t>(kept));
  return {all.first(all.count - kept), behind};
}

/// To the library in src/cuda_counter, where it is preloaded: kernels are tried while programs are
/// built.
void tell_that_programs_are_built() {
  using Tell = void (*)();
  if (const auto tell =
          reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "arenite_cuda_programs_are_built")))
    tell();
}

}  // namespace

int run_train(const TrainArguments& given) {
  TrainArguments a = given;
  if (a.count_heap) count_heap();
  catch_interrupts();
  refuse_shared_outputs(a);
  // All files are made before the long work begins, so that a wrong path costs nothing.
  PlanFiles plans(a.plan_svg, a.plan_json);
  std::optional<TrainingLog> log;
  if (!a.log.empty()) log.emplace(a.log, tested_by(a));
  Checkpoints checkpoints(a.checkpoints);
  const std::unique_ptr<TrainingReport> report = make_report(a);
  const auto nothing_trained = [&] {
    report->interrupted(0);
    return exit_interrupted;
  };
  const Subject subject = subject_of(given);
  const nn::NamedModel& model = subject.model;
  if (a.batch == 0) a.batch = subject.batch;
  const runtime::KernelChoices chosen =
      a.kernels.empty() ? runtime::KernelChoices() : runtime::KernelChoices::read(a.kernels);
  const data::ImageData data = data::find(a.dataset.empty() ? model.dataset : a.dataset, a.data);
  checkpoints.say(words_of(data, model.name));
  data::Split train_split = a.limit > 0 ? data.train.first(a.limit) : data.train,
              tested_split = data.test;
  if (a.validation)
    std::tie(train_split, tested_split) = with_validation(train_split, *a.validation);
  const std::int64_t batch = a.batch * a.accumulate,
                     steps_an_epoch = (train_split.count + batch - 1) / batch;
  const optim::Optimizer optimizer = subject.optimizer(a.epochs * steps_an_epoch);
  if (interrupted()) return nothing_trained();

  if (a.profile) name_kernels();
  runtime::Session session({.workers = a.workers, .device = a.device, .device_memory = a.memory});
  train::Trainer trainer(
      session, subject.script ? subject.script->build : train::classify(model.layers, data.shape()),
      {.batch = a.batch,
       .accumulate = a.accumulate,
       .optimizer = optimizer,
       .init = {.seed = a.seed, .range = a.init},
       .shards = a.cut.shards,
       .lanes = a.cut.lanes,
       .shards_at_once = a.cut.at_once,
       .layout = a.arenas,
       .fuse = a.fuse,
       .compute = a.compute,
       .kernels = chosen,
       .cuda_graphs = a.cuda_graphs,
       .resident_data = a.resident_data});
  if (interrupted()) return nothing_trained();
  const std::vector<Port> inputs = trainer.inputs();
  const SplitSamples trained = samples_for(inputs, train_split, "training"),
                     tested = samples_for(inputs, tested_split, tested_by(a)),
                     test = samples_for(inputs, data.test, "test");
  if (trained.samples.count() < trainer.batch()) {
    fail({.found = fmt::format("a batch of {} from {} training samples", trainer.batch(),
                               trained.samples.count()),
          .expected = "a batch no larger than the set",
          .hint = "use a smaller --batch or a larger --limit"});
  }
  trainer.prepare(&trained.samples, &tested.samples);
  trainer.prepare(nullptr, &test.samples);
  tell_that_programs_are_built();
  const std::string differs = checkpoints.resume(trainer);
  const int done = trainer.epochs();
  if (log) log->keep(done);
  const long done_steps = trainer.steps();
  if (interrupted()) return nothing_trained();

  report->start({.arguments = a,
                 .data = data,
                 .train = train_split,
                 .model = model,
                 .session = session,
                 .trainer = trainer,
                 .optimizer = optimizer,
                 .kernels = chosen});
  checkpoints.report_resumed(differs, trainer, *report);
  show_plan(a, trainer);
  flush_output();
  plans.write(trainer.step_plan());

  double training_seconds = 0, trained_steps = 0;  // of all epochs that have an end here
  std::optional<double> first_step;
  const runtime::Counters before = runtime::counters();
  train::FitOptions fit{.epochs = std::max(a.epochs - done, 0),
                        .shuffle = a.shuffle,
                        .seed = a.seed,
                        .validation = &tested.samples};
  checkpoints.add_to(fit, trainer, *report);
  Checkpoints::Rescue rescue(checkpoints, trainer);
  fit.stop = &interrupted();
  if (a.profile) fit.profile_steps = profiled_steps;
  if (report->shows_progress())
    fit.on_progress = [&](train::Progress progress) {
      progress.epoch += done;
      progress.epochs += done;
      report->progress(progress);
    };
  fit.on_first_step = [&] {
    first_step = process_age();
    if (first_step) report->first_step(*first_step);
  };
  fit.on_epoch = [&](train::EpochReport epoch) {
    epoch.epoch += done;
    report->epoch(epoch);
    training_seconds += epoch.train.seconds;
    trained_steps +=
        std::ceil(static_cast<double>(epoch.train.samples) / static_cast<double>(batch));
    if (log) log->epoch(epoch);
    checkpoints.epoch(epoch, trainer, *report);
  };
  const train::EpochReport last = [&] {
    try {
      return trainer.fit(trained.samples, fit);
    } catch (const runtime::StepError& error) {  // no wrong input, but a run that failed
      rescue.is_worthless = true;
      throw Failure(error.text());
    }
  }();

  const bool cut_short = interrupted();
  if (cut_short && trainer.steps() == done_steps) return nothing_trained();
  if (cut_short) report->interrupted(trainer.steps());
  const train::Metrics tested_last =
      last.validation && !a.validation ? *last.validation : trainer.evaluate(test.samples);
  const TrainingEnd end{
      .test_accuracy = tested_last.accuracy,
      .test_loss = tested_last.loss,
      .weights_sha256 = trainer.weights_sha256(),
      .stopped_early = !cut_short && trainer.epochs() < a.epochs,
      .steps = trainer.steps(),
      .steps_per_second = training_seconds > 0 ? trained_steps / training_seconds : 0,
      .first_step_seconds = first_step,
      .peak_rss = peak_rss_bytes(),
      .costs = trainer.costs(),
      .since = difference(runtime::counters(), before)};
  checkpoints.end(trainer, *report);
  if (log) log->end(end);
  if (a.profile) report->profile(last.profile);
  report->end(end);
  return interrupted() ? exit_interrupted : exit_ok;
}

}  // namespace arenite::cli
