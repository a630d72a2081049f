#include <arenite/random.hpp>
#include <arenite/train/trainer.hpp>

#include "src/base/refuse.hpp"
#include "src/base/sha256.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

namespace arenite::train {
namespace {

class Timer {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

bool is_set(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

/// A profile of a program's next steps, forgotten when an exception takes the way past `take`.
class ProfileGuard {
 public:
  ProfileGuard(runtime::Program& program, long steps) : program_(&program) {
    program.start_profile(steps);
  }
  ~ProfileGuard() {
    if (program_) program_->drop_profile();
  }
  ProfileGuard(const ProfileGuard&) = delete;
  ProfileGuard& operator=(const ProfileGuard&) = delete;

  runtime::Profile take() { return std::exchange(program_, nullptr)->stop_profile(); }

 private:
  runtime::Program* program_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const PlanReport& report) {
  return out << report.text_;
}

Trainer::Impl::Impl(runtime::Session& s, nn::Layer m, Shape i, TrainerOptions o)
    : session(s), model(std::move(m)), image(i), options(std::move(o)) {
  if (image.rank() != 3) refuse("images of shape " + to_string(image), "[H, W, C]");
  constexpr std::int64_t most = 1 << 20;
  if (options.batch < 1 || options.batch > most)
    refuse("a batch of " + std::to_string(options.batch), "1 to " + std::to_string(most));
  accumulate();
  if (options.init.range && !(std::isfinite(*options.init.range) && *options.init.range > 0)) {
    refuse("an initial range of " + std::to_string(*options.init.range), "a finite number above 0");
  }
  plan::StateLayout own;  // programs that run place their state anew
  preview = compile_step(model, options.loss, options.optimizer, first_request(), &own);
  identity = known_facts();
}

void Trainer::Impl::accumulate() {
  if (options.accumulate == 1) return;
  constexpr std::int64_t most = 64;
  const std::int64_t shards = options.accumulate * std::max(options.shards, 1);
  if (options.accumulate < 1 || options.accumulate > most || shards > most) {
    refuse("gradients of " + std::to_string(options.accumulate) + " batches in " +
               std::to_string(std::max(options.shards, 1)) + " shards added up",
           "1 to " + std::to_string(most) + " shards in all");
  }
  options.batch *= options.accumulate;
  options.shards = static_cast<int>(shards);
}

StepRequest Trainer::Impl::first_request() const {
  return setup().request("train", options.batch, options.batch, true,
                         std::numeric_limits<std::size_t>::max());
}

bool Trainer::Impl::is_new(const data::Split* split, bool training) const {
  if (!split) return false;
  check_split(*split, training, image, options.batch);
  return !programs || !programs->find(*split, training);
}

void Trainer::Impl::prepare(const data::Split* train, const data::Split* test) {
  if (running) {
    refuse("a trainer asked for another sweep in the middle of one",
           "calls from outside `on_progress`");
  }
  const bool new_train = is_new(train, true), new_test = is_new(test, false);
  if (!new_train && !new_test) return;  // and allocate nothing: epochs come here
  auto more = wanted;
  const auto want = [&](const data::Split& split, bool training) {
    if (!TrainerPrograms::has(more, split, training)) more.emplace_back(split, training);
  };
  if (new_train) want(*train, true);
  if (new_test) want(*test, false);
  if (programs) {
    state = programs->state();
    for (auto& [key, bytes] : programs->save()) saved[key] = std::move(bytes);
    programs.reset();  // first: the memory of both might be more than there is
  }
  try {
    build(more);
  } catch (...) {
    if (!wanted.empty()) build(wanted);
    throw;
  }
  wanted = std::move(more);
}

void Trainer::Impl::build(const std::vector<TrainerPrograms::Wanted>& splits) {
  auto made = std::make_unique<TrainerPrograms>(session, setup(), state, splits);
  made->restore(saved);
  programs = std::move(made);
}

/// Counts steps of training, and what they draw; of one that fails, too: what is drawn next is none
/// of that.
class Trainer::Impl::Counted {
 public:
  /// `samples` of a step; 0: it trains nothing.
  Counted(RunPlace& place, const runtime::Program& program, std::int64_t samples)
      : place_(place), program_(program), samples_(samples), before_(program.steps()) {}
  ~Counted() {
    const long begun = program_.steps() - before_;
    place_.steps += samples_ > 0 ? begun : 0;
    place_.drawn += begun * samples_;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  RunPlace& place_;
  const runtime::Program& program_;
  std::int64_t samples_;
  long before_;
};

std::int64_t Trainer::Impl::run(SplitPrograms& of, const Breaks& breaks, std::int64_t done) {
  running = true;
  struct Guard {
    bool& flag;
    ~Guard() { flag = false; }
  } const guard{running};
  const std::int64_t begun = done;
  Timer since_pause;
  const auto is_due = [](const Timer& since, double seconds) { return since.seconds() >= seconds; };
  const auto run_steps = [&](runtime::Program& program, std::int64_t size, std::int64_t end) {
    while (done < end && !is_set(breaks.stop)) {
      const bool first = done == begun && breaks.first_step;
      const bool each = first || (breaks.pause && breaks.seconds <= 0);
      long most = each ? 1 : static_cast<long>((end - done) / size);
      double seconds = breaks.pause ? breaks.seconds : 0;
      if (breaks.save && breaks.save_steps > 0)
        most = std::min(most, breaks.save_steps - place.steps % breaks.save_steps);
      if (breaks.save_in) {
        const double left = std::max(breaks.save_in(), 1e-3);
        seconds = seconds > 0 ? std::min(seconds, left) : left;
      }
      meter.begin();
      const long ran = [&] {
        const Counted counted(place, program, of.training ? size : 0);
        return program.run(
            {.steps = most,
             .counters = {{{names::cursor, done, size}, {of.position, place.drawn, size}}},
             .stop = breaks.stop,
             .seconds = seconds});
      }();
      meter.end();  // what a display costs is its own affair
      done += ran * size;
      (of.training ? meter.costs().training_steps : meter.costs().evaluation_steps) += ran;
      if (of.training) place.done = done;
      if (first && ran > 0) breaks.first_step();
      const bool saves = (breaks.save_steps > 0 && place.steps % breaks.save_steps == 0) ||
                         (breaks.save_in && breaks.save_in() <= 0);
      if (breaks.save && ran > 0 && saves) breaks.save();
      if (first && breaks.seconds > 0) continue;  // too early for a pause
      if (done < end && breaks.pause && !is_set(breaks.stop) &&
          is_due(since_pause, breaks.seconds)) {
        breaks.pause(done);
        since_pause = {};
      }
    }
  };
  const std::int64_t whole = of.split.count / of.batch * of.batch;
  run_steps(*of.whole, of.batch, whole);
  if (of.rest && done == whole) run_steps(*of.rest, of.split.count - whole, of.split.count);
  return done;
}

/// An epoch, or what is left of it. Of one that fails nothing counts but what it has changed.
std::int64_t Trainer::Impl::trained(SplitPrograms& of, const Breaks& breaks) {
  try {
    return run(of, breaks, place.done);
  } catch (...) {
    place.begin_epoch();
    throw;
  }
}

bool Trainer::Impl::has_no_means() {
  constexpr auto cls = graph::StorageClass::optimizer_state;
  if (programs->has_state(cls, graph::step_name))
    return programs->set().state<std::int64_t>(cls, graph::step_name)[0] == 0;
  return place.steps == 0;  // those of a run that was resumed are there
}

Metrics Trainer::Impl::metrics(std::int64_t samples, double seconds) {
  const double n = static_cast<double>(std::max<std::int64_t>(1, samples));
  return {.loss = statistics()[0] / n,
          .accuracy = statistics()[1] / n,
          .samples = samples,
          .seconds = seconds};
}

bool Trainer::Impl::is_best(const Metrics& validation) {
  const bool best = !std::isnan(validation.loss) && !(validation.loss >= place.best_loss);
  ++place.validations;
  place.since = best ? 0 : place.since + 1;
  if (best) place.best_loss = validation.loss;
  return best;
}

Trainer::Trainer(runtime::Session& session, nn::Layer model, Shape image, TrainerOptions options)
    : impl_(std::make_unique<Impl>(session, std::move(model), image, std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::prepare(const data::Split* train, const data::Split* test) {
  impl_->prepare(train, test);
}

EpochReport Trainer::fit(const data::Split& train, const FitOptions& options) {
  if (options.epochs < 0) refuse(std::to_string(options.epochs) + " epochs", "at least 0");
  if (options.patience < 0)
    refuse("a patience of " + std::to_string(options.patience) + " epochs", "at least 0");
  if (options.profile_steps < 0 || options.profile_steps > runtime::max_profile_steps) {
    refuse("a profile of " + std::to_string(options.profile_steps) + " steps",
           "0 to " + std::to_string(runtime::max_profile_steps));
  }
  if (options.save_steps < 0 || !(options.save_seconds >= 0))
    refuse("a save every " + std::to_string(options.save_steps) + " steps or " +
               std::to_string(options.save_seconds) + " seconds",
           "numbers of at least 0");
  prepare(&train, options.validation);
  Impl& self = *impl_;
  self.begin({train, options.shuffle, options.seed});
  Timer since_save;
  EpochReport report;
  const auto is_over = [&] {
    return is_set(options.stop) ||
           (options.patience > 0 && options.validation && self.place.since >= options.patience);
  };
  for (int epoch = 0; epoch < options.epochs && !is_over(); ++epoch) {
    // Anew: what `on_epoch` evaluates may have built the programs again, or failed to.
    self.prepare(&train, options.validation);
    SplitPrograms& of = *self.programs->find(train, true);
    // Before the first step of an epoch nothing is under way, so the order may be rewritten.
    if (options.shuffle) {
      permutation(of.order, options.seed, static_cast<std::uint32_t>(self.place.epochs));
    } else {
      std::iota(of.order.begin(), of.order.end(), 0);
    }
    std::ranges::copy(self.place.sums, self.statistics().begin());
    std::optional<ProfileGuard> profile;
    if (options.profile_steps > 0 && epoch + 1 == options.epochs) {
      // An epoch has no more steps than this: records of more would only take memory.
      profile.emplace(*of.whole,
                      std::min(options.profile_steps, static_cast<long>(train.count / of.batch)));
    }
    const Timer timer;
    const double before = self.place.seconds;
    const auto seconds = [&] { return before + timer.seconds(); };
    Impl::Breaks breaks{.stop = options.stop, .save_steps = options.save_steps};
    if (options.on_save) {
      breaks.save = [&] {
        self.place.seconds = seconds();
        options.on_save();
        since_save = {};
      };
    }
    if (options.on_save && options.save_seconds > 0)
      breaks.save_in = [&] { return options.save_seconds - since_save.seconds(); };
    if (epoch == 0) breaks.first_step = options.on_first_step;
    if (options.on_progress) {
      breaks.seconds = options.progress_seconds;
      breaks.pause = [&](std::int64_t samples) {
        const Metrics now = self.metrics(samples, seconds());
        options.on_progress({.epoch = epoch,
                             .epochs = options.epochs,
                             .done = samples,
                             .total = train.count,
                             .loss = now.loss,
                             .accuracy = now.accuracy,
                             .seconds = now.seconds});
      };
    }
    const std::int64_t done = self.trained(of, breaks);
    report = {.epoch = epoch, .train = self.metrics(done, seconds()), .validation = {}};
    if (profile) report.profile = profile->take();
    if (done == train.count) {
      self.place.begin_epoch();
      ++self.place.epochs;
    } else {
      self.place.seconds = report.train.seconds;
      self.keep_sums();
    }
    if (options.validation) report.validation = evaluate(*options.validation);
    report.best = report.validation && done == train.count && self.is_best(*report.validation);
    if (options.on_epoch) options.on_epoch(report);
  }
  return report;
}

Metrics Trainer::evaluate(const data::Split& test) {
  prepare(nullptr, &test);
  Impl& self = *impl_;
  std::ranges::fill(self.statistics(), 0.0);
  SplitPrograms& of = *self.programs->find(test, false);
  if (self.options.optimizer.averaging && self.has_no_means())
    compile::begin_averages(self.programs->set(), of.whole->spec().graph);
  const Timer timer;
  const std::int64_t done = self.run(of, {});
  return self.metrics(done, timer.seconds());
}

PlanReport Trainer::plan() const {
  std::ostringstream out;
  if (impl_->training()) {
    impl_->programs->set().print_table(out, impl_->training()->name);
  } else {
    runtime::print_plan(out, impl_->preview.spec);
  }
  return PlanReport(out.str());
}

std::vector<runtime::BlockUse> Trainer::blocks() const {
  return impl_->programs ? impl_->programs->set().block_uses() : std::vector<runtime::BlockUse>();
}

void Trainer::explain(std::ostream& out) const {
  const Impl& self = *impl_;
  const SplitPrograms* const runs = self.training();
  StepRequest request =
      runs ? self.programs->request(self.setup(), *runs, runs->batch) : self.first_request();
  request.how.remarks = true;
  out << "passes of a training step:\n"
      << compile_step(self.model, self.options.loss, self.options.optimizer, request).report;
  if (self.programs) self.programs->set().explain(out);
}

const plan::StepPlan& Trainer::step_plan() const { return impl_->spec().plan; }
int Trainer::shards() const noexcept { return impl_->cut().shards; }
int Trainer::lanes() const noexcept { return impl_->cut().lanes; }
int Trainer::shards_at_once() const noexcept {
  return impl_->training() ? impl_->training()->at_once : impl_->preview.at_once;
}
const std::string& Trainer::undivided() const noexcept {
  return impl_->training() ? impl_->training()->undivided : impl_->preview.report.undivided;
}
std::size_t Trainer::chosen_kernels() const {
  return impl_->options.kernels.taken_by(impl_->spec().graph, impl_->options.compute);
}
long Trainer::steps() const noexcept { return impl_->place.steps; }
StepCosts Trainer::costs() const noexcept { return impl_->meter.costs(); }

std::vector<Trainer::NamedParameter> Trainer::parameters() {
  if (!impl_->programs) {
    refuse("parameters asked for before any data was seen",
           "a call of prepare, fit or evaluate first");
  }
  std::vector<NamedParameter> all;
  const graph::Graph& graph = impl_->preview.spec.graph;
  for (const graph::ValueId id : graph.declared(graph::StorageClass::parameter)) {
    const graph::Value& value = graph[id];
    all.push_back({.name = value.name,
                   .shape = value.shape,
                   .values = impl_->programs->set().state<float>(graph::StorageClass::parameter,
                                                                 value.name)});
  }
  return all;
}

std::string Trainer::weights_sha256() {
  Sha256 hash;
  for (const NamedParameter& parameter : parameters()) {
    const std::string head = parameter.name + to_string(parameter.shape);
    hash.update(std::as_bytes(std::span(head)));
    hash.update(std::as_bytes(parameter.values));
  }
  return hash.hex();
}

void Trainer::set_learning_rate(float learning_rate) {
  graph::check_learning_rate(learning_rate);
  Impl& self = *impl_;
  self.options.optimizer.learning_rate = learning_rate;
  constexpr auto cls = graph::StorageClass::buffer;
  if (self.programs && self.programs->has_state(cls, graph::learning_rate_name))
    self.programs->set().state<float>(cls, graph::learning_rate_name)[0] = learning_rate;
  const auto saved = self.saved.find({cls, graph::learning_rate_name});
  if (saved != self.saved.end()) std::memcpy(saved->second.data(), &learning_rate, sizeof(float));
}

}  // namespace arenite::train
