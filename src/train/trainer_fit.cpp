// A trainer's sweeps: steps, pauses, what they come to.
#include <arenite/random.hpp>

#include "src/base/refuse.hpp"
#include "src/train/timer.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

namespace arenite::train {
namespace {

bool is_set(const std::atomic<bool>* stop) {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

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

void Trainer::Impl::run(Swept& of, std::int64_t& done, const Limits& limits) {
  if (of.whole == nullptr) {
    refuse("a trainer that found no memory for more samples, nor for those before",
           "another one, which goes on from a checkpoint");
  }
  running = true;
  struct Guard {
    bool& flag;
    ~Guard() { flag = false; }
  } const guard{running};
  const bool trains = of.entry == "train";
  const std::int64_t begun = done, count = of.samples.count(), whole = count / of.batch * of.batch;
  const Timer timer;
  long left = limits.steps > 0 ? limits.steps : std::numeric_limits<long>::max();
  const auto is_over = [&] {
    return left == 0 || is_set(limits.stop) ||
           (limits.seconds > 0 && done > begun && timer.seconds() >= limits.seconds);
  };
  const auto run_steps = [&](runtime::Program& program, std::int64_t size, std::int64_t end) {
    if (done >= end || is_over()) return;
    meter.begin();
    const long ran = [&] {
      const Counted counted(place, program, trains ? size : 0);
      const double seconds = limits.seconds > 0 ? limits.seconds - timer.seconds() : 0;
      return program.run({.steps = std::min(left, static_cast<long>((end - done) / size)),
                          .counters = {{{"cursor", done, size}, {of.position, place.drawn, size}}},
                          .stop = limits.stop,
                          .seconds = limits.seconds > 0 ? std::max(seconds, 1e-6) : 0});
    }();
    meter.end();  // what a display costs is its own affair
    done += ran * size;
    left -= ran;
    (trains ? meter.costs().training_steps : meter.costs().evaluation_steps) += ran;
  };
  run_steps(*of.whole, of.batch, whole);
  if (of.rest && done == whole) run_steps(*of.rest, count - whole, count);
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

void Trainer::Impl::lower_rate(const Plateau& plateau) {
  if (plateau.patience == 0 || place.since == 0 || place.since % plateau.patience != 0) return;
  const float lower = std::max(rate * plateau.factor, plateau.least);
  if (!(lower < rate)) return;
  set(graph::StorageClass::buffer, graph::learning_rate_name, std::as_bytes(std::span(&lower, 1)));
}

void Trainer::Impl::begin(const Samples& train, const Samples* validation, const FitOptions& how) {
  if (how.epochs < 0) refuse(std::to_string(how.epochs) + " epochs", "at least 0");
  if (how.patience < 0)
    refuse("a patience of " + std::to_string(how.patience) + " epochs", "at least 0");
  const Plateau& plateau = how.plateau;
  if (plateau.patience < 0 || !(plateau.factor >= 0 && plateau.factor <= 1) ||
      !(plateau.least >= 0)) {
    refuse("a plateau of " + std::to_string(plateau.patience) + " epochs, times " +
               std::to_string(plateau.factor) + ", at least " + std::to_string(plateau.least),
           "0 or more epochs, a factor of 0 to 1, and a rate of at least 0");
  }
  if (how.profile_steps < 0 || how.profile_steps > runtime::max_profile_steps) {
    refuse("a profile of " + std::to_string(how.profile_steps) + " steps",
           "0 to " + std::to_string(runtime::max_profile_steps));
  }
  if (how.save_steps < 0 || !(how.save_seconds >= 0))
    refuse("a save every " + std::to_string(how.save_steps) + " steps or " +
               std::to_string(how.save_seconds) + " seconds",
           "numbers of at least 0");
  if (fitting) refuse("a fit in a callback of another one", "one behind the other");
  end_profile();
  going.reset();
  prepare(&train, validation);
  const Samples& known = sweeps.find("train", train)->samples;
  begin({&known, how.shuffle, how.seed});
  going.emplace(
      Going{.train = &known,
            .validation = validation ? &sweeps.find(evaluation(), *validation)->samples : nullptr,
            .epochs = how.epochs,
            .shuffle = how.shuffle,
            .seed = how.seed,
            .patience = how.patience,
            .plateau = plateau,
            .profile_steps = how.profile_steps,
            .stop = how.stop});
}

/// Before the first step of an epoch nothing is under way, so the order may be rewritten.
void Trainer::Impl::begin_epoch(Swept& of) {
  if (going->shuffle) {
    permutation(of.order, going->seed, static_cast<std::uint32_t>(place.epochs));
  } else {
    std::iota(of.order.begin(), of.order.end(), 0);
  }
  if (going->profile_steps > 0 && going->epoch + 1 == going->epochs) {
    // An epoch has no more steps than this: records of more would only take memory.
    of.whole->start_profile(
        std::min(going->profile_steps, static_cast<long>(of.samples.count() / of.batch)));
    going->profiles = true;
  }
  going->in_epoch = true;
}

Event Trainer::Impl::advance(const Limits& limits, const std::function<void()>& stepped) {
  const auto is_over = [&] {
    if (!going || going->in_epoch) return !going;
    return going->epoch >= going->epochs || is_set(going->stop) ||
           (going->patience > 0 && going->validation && place.since >= going->patience);
  };
  if (is_over()) {
    going.reset();
    return {};
  }
  Swept& of = *sweeps.find("train", *going->train);
  const std::int64_t count = of.samples.count();
  if (!going->in_epoch) begin_epoch(of);
  try {
    put_back_sums();  // somebody may have evaluated
    const Timer timer;
    const double before = place.seconds;
    run(of, place.done, {limits.steps, limits.seconds, going->stop});
    place.seconds = before + timer.seconds();
    keep_sums();
  } catch (...) {
    // Of one that fails nothing counts but what it has changed.
    if (std::exchange(going->profiles, false)) of.whole->drop_profile();
    going.reset();
    place.begin_epoch();
    throw;
  }
  const bool whole = place.done == count;
  const Metrics now = metrics(place.done, place.seconds);
  if (stepped) stepped();  // which may evaluate
  Event event{.kind = Event::Kind::progress,
              .progress = {.epoch = going->epoch,
                           .epochs = going->epochs,
                           .done = place.done,
                           .total = count,
                           .loss = now.loss,
                           .accuracy = now.accuracy,
                           .seconds = now.seconds},
              .report = {.epoch = going->epoch, .train = now, .validation = {}}};
  if (!whole && !is_set(going->stop)) return event;
  event.kind = Event::Kind::epoch;
  event.stopped = !whole;
  if (std::exchange(going->profiles, false)) event.report.profile = of.whole->stop_profile();
  going->in_epoch = false;
  ++going->epoch;
  if (whole) {
    place.begin_epoch();
    ++place.epochs;
  }
  if (going->validation) event.report.validation = evaluate(*going->validation, Weights::averaged);
  event.report.best = event.report.validation && whole && is_best(*event.report.validation);
  event.report.learning_rate = rate;
  if (event.report.validation && whole) lower_rate(going->plateau);
  return event;
}

/// Events, and who is told of them.
EpochReport Trainer::Impl::fit(const Samples& train, const Samples* validation,
                               const FitOptions& how) {
  begin(train, validation, how);
  fitting = true;
  struct Guard {
    Impl& of;
    ~Guard() {
      of.fitting = false;
      of.end_profile();
      of.going.reset();
    }
  } const guard{*this};
  Timer since_save, since_progress;
  EpochReport last;
  bool first = true;
  long before = 0;
  const auto save_in = [&] {
    return how.save_seconds > 0 ? how.save_seconds - since_save.seconds() : 0;
  };
  std::function<void()> stepped;
  if (how.on_first_step || how.on_save) {
    stepped = [&] {
      if (place.steps == before) return;
      if (std::exchange(first, false) && how.on_first_step) how.on_first_step();
      const bool saves = (how.save_steps > 0 && place.steps % how.save_steps == 0) ||
                         (how.save_seconds > 0 && save_in() <= 0);
      if (!how.on_save || !saves) return;
      how.on_save();
      since_save = {};
    };
  }
  while (true) {
    Limits limits;
    if (how.on_progress) limits.seconds = how.progress_seconds;
    const bool each = how.on_progress && how.progress_seconds <= 0;
    if (each || (first && how.on_first_step)) limits.steps = 1;
    if (how.on_save && how.save_steps > 0 && limits.steps == 0)
      limits.steps = how.save_steps - place.steps % how.save_steps;
    if (how.on_save && how.save_seconds > 0) {
      const double left = std::max(save_in(), 1e-3);
      limits.seconds = limits.seconds > 0 ? std::min(limits.seconds, left) : left;
    }
    before = place.steps;
    Event event = advance(limits, stepped);
    if (!event) return last;
    if (event.kind == Event::Kind::epoch) {
      last = std::move(event.report);
      if (how.on_epoch) how.on_epoch(last);
      since_progress = {};
    } else if (how.on_progress && !is_set(how.stop) &&
               (each || since_progress.seconds() >= how.progress_seconds)) {
      how.on_progress(event.progress);
      since_progress = {};
    }
  }
}

void Trainer::Impl::end_profile() {
  if (going && std::exchange(going->profiles, false))
    sweeps.find("train", *going->train)->whole->drop_profile();
}

void Trainer::Impl::begin_means(const Swept& of, Weights weights) {
  if (of.whole != nullptr && averages(weights) && has_no_means())
    compile::begin_averages(*sweeps.set(), of.whole->spec().graph);
}

Metrics Trainer::Impl::evaluate(const Samples& test, Weights weights) {
  if (!sweeps.find(evaluation(weights), test) && are_few(test)) return evaluate_few(test, weights);
  prepare(nullptr, &test, weights);
  for (std::size_t i = 0; i < network.graph.outputs.size(); ++i) std::ranges::fill(sums(i), 0.0);
  Swept& of = *sweeps.find(evaluation(weights), test);
  begin_means(of, weights);
  const Timer timer;
  std::int64_t done = 0;
  run(of, done, {});
  return metrics(done, timer.seconds());
}

}  // namespace arenite::train
