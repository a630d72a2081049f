// A trainer's sweeps: steps, pauses, what they come to.
#include <arenite/random.hpp>

#include "src/base/refuse.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
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

std::int64_t Trainer::Impl::run(Swept& of, const Breaks& breaks, std::int64_t done) {
  running = true;
  struct Guard {
    bool& flag;
    ~Guard() { flag = false; }
  } const guard{running};
  const bool trains = of.entry == "train";
  const std::int64_t begun = done, count = of.samples.count();
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
        const Counted counted(place, program, trains ? size : 0);
        return program.run(
            {.steps = most,
             .counters = {{{"cursor", done, size}, {of.position, place.drawn, size}}},
             .stop = breaks.stop,
             .seconds = seconds});
      }();
      meter.end();  // what a display costs is its own affair
      done += ran * size;
      (trains ? meter.costs().training_steps : meter.costs().evaluation_steps) += ran;
      if (trains) place.done = done;
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
  const std::int64_t whole = count / of.batch * of.batch;
  run_steps(*of.whole, of.batch, whole);
  if (of.rest && done == whole) run_steps(*of.rest, count - whole, count);
  return done;
}

/// An epoch, or what is left of it. Of one that fails nothing counts but what it has changed.
std::int64_t Trainer::Impl::trained(Swept& of, const Breaks& breaks) {
  try {
    return run(of, breaks, place.done);
  } catch (...) {
    place.begin_epoch();
    throw;
  }
}

bool Trainer::Impl::has_no_means() {
  constexpr auto cls = graph::StorageClass::optimizer_state;
  if (sweeps.has_state(cls, graph::step_name))
    return sweeps.set()->state<std::int64_t>(cls, graph::step_name)[0] == 0;
  return place.steps == 0;  // those of a run that was resumed are there
}

std::span<double> Trainer::Impl::sums(std::size_t output) {
  return sweeps.set()->state<double>(graph::StorageClass::buffer,
                                     network.graph[network.graph.outputs.at(output)].name);
}

void Trainer::Impl::keep_sums() {
  place.sums.clear();
  for (std::size_t i = 0; i < network.graph.outputs.size(); ++i)
    std::ranges::copy(sums(i), std::back_inserter(place.sums));
}

void Trainer::Impl::put_back_sums() {
  std::size_t next = 0;
  for (std::size_t i = 0; i < network.graph.outputs.size(); ++i) {
    for (double& sum : sums(i)) sum = place.sums.empty() ? 0 : place.sums.at(next++);
  }
}

Metrics Trainer::Impl::metrics(std::int64_t samples, double seconds) {
  Metrics found{.samples = samples, .seconds = seconds};
  found.names = metric_names;
  for (std::size_t i = 0; i < network.metrics.size(); ++i) {
    const OutputMetric& metric = network.metrics[i];
    const double n = metric.each * static_cast<double>(std::max<std::int64_t>(1, samples)),
                 count = metric.count_output ? sums(*metric.count_output)[metric.count_element] : n;
    found.values.at(i) = sums(metric.output)[metric.element] / count;
    if (metric.name == "loss") found.loss = found.values[i];
    if (metric.name == "accuracy") found.accuracy = found.values[i];
  }
  return found;
}

bool Trainer::Impl::is_best(const Metrics& validation) {
  const bool best = !std::isnan(validation.loss) && !(validation.loss >= place.best_loss);
  ++place.validations;
  place.since = best ? 0 : place.since + 1;
  if (best) place.best_loss = validation.loss;
  return best;
}

EpochReport Trainer::Impl::fit(const data::Samples& train, const data::Samples* validation,
                               const FitOptions& how) {
  if (how.epochs < 0) refuse(std::to_string(how.epochs) + " epochs", "at least 0");
  if (how.patience < 0)
    refuse("a patience of " + std::to_string(how.patience) + " epochs", "at least 0");
  if (how.profile_steps < 0 || how.profile_steps > runtime::max_profile_steps) {
    refuse("a profile of " + std::to_string(how.profile_steps) + " steps",
           "0 to " + std::to_string(runtime::max_profile_steps));
  }
  if (how.save_steps < 0 || !(how.save_seconds >= 0))
    refuse("a save every " + std::to_string(how.save_steps) + " steps or " +
               std::to_string(how.save_seconds) + " seconds",
           "numbers of at least 0");
  if (!sweeps.find("train", train)) data::check(train);
  if (train.count() < options.batch) {
    refuse("a batch of " + std::to_string(options.batch) + " from " +
               std::to_string(train.count()) + " samples",
           "a batch no larger than the set");
  }
  const std::int64_t count = train.count();
  prepare(&train, validation);
  begin({&sweeps.find("train", train)->samples, how.shuffle, how.seed});
  Timer since_save;
  EpochReport report;
  const auto is_over = [&] {
    return is_set(how.stop) || (how.patience > 0 && validation && place.since >= how.patience);
  };
  for (int epoch = 0; epoch < how.epochs && !is_over(); ++epoch) {
    // Anew: what `on_epoch` evaluates may have built the programs again, or failed to.
    prepare(&train, validation);
    Swept& of = *sweeps.find("train", train);
    // Before the first step of an epoch nothing is under way, so the order may be rewritten.
    if (how.shuffle) {
      permutation(of.order, how.seed, static_cast<std::uint32_t>(place.epochs));
    } else {
      std::iota(of.order.begin(), of.order.end(), 0);
    }
    put_back_sums();
    std::optional<ProfileGuard> profile;
    if (how.profile_steps > 0 && epoch + 1 == how.epochs) {
      // An epoch has no more steps than this: records of more would only take memory.
      profile.emplace(*of.whole, std::min(how.profile_steps, static_cast<long>(count / of.batch)));
    }
    const Timer timer;
    const double before = place.seconds;
    const auto seconds = [&] { return before + timer.seconds(); };
    Breaks breaks{.stop = how.stop, .save_steps = how.save_steps};
    if (how.on_save) {
      breaks.save = [&] {
        place.seconds = seconds();
        how.on_save();
        since_save = {};
      };
    }
    if (how.on_save && how.save_seconds > 0)
      breaks.save_in = [&] { return how.save_seconds - since_save.seconds(); };
    if (epoch == 0) breaks.first_step = how.on_first_step;
    if (how.on_progress) {
      breaks.seconds = how.progress_seconds;
      breaks.pause = [&](std::int64_t samples) {
        const Metrics now = metrics(samples, seconds());
        how.on_progress({.epoch = epoch,
                         .epochs = how.epochs,
                         .done = samples,
                         .total = count,
                         .loss = now.loss,
                         .accuracy = now.accuracy,
                         .seconds = now.seconds});
      };
    }
    const std::int64_t done = trained(of, breaks);
    report = {.epoch = epoch, .train = metrics(done, seconds()), .validation = {}};
    if (profile) report.profile = profile->take();
    if (done == count) {
      place.begin_epoch();
      ++place.epochs;
    } else {
      place.seconds = report.train.seconds;
      keep_sums();
    }
    if (validation) report.validation = evaluate(*validation);
    report.best = report.validation && done == count && is_best(*report.validation);
    if (how.on_epoch) how.on_epoch(report);
  }
  return report;
}

Metrics Trainer::Impl::evaluate(const data::Samples& test) {
  prepare(nullptr, &test);
  for (std::size_t i = 0; i < network.graph.outputs.size(); ++i) std::ranges::fill(sums(i), 0.0);
  Swept& of = *sweeps.find(evaluation(), test);
  if (options.optimizer.averaging && has_no_means())
    compile::begin_averages(*sweeps.set(), of.whole->spec().graph);
  const Timer timer;
  const std::int64_t done = run(of, {});
  return metrics(done, timer.seconds());
}

}  // namespace arenite::train
