// Arenite, as its own users would train.
#include <arenite/arenite.hpp>
#include <arenite/error.hpp>

#include "bench/contestant.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace arenite::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Sets a flag after some seconds, and waits for that in the end.
class Timer {
 public:
  Timer(std::atomic<bool>& flag, double seconds)
      : thread_([&flag, seconds] {
          std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
          flag = true;
        }) {}

 private:
  std::jthread thread_;
};

runtime::Compute compute_of(const std::string& name) {
  for (const auto compute :
       {runtime::Compute::float32, runtime::Compute::bfloat16, runtime::Compute::tfloat32}) {
    if (name == runtime::to_string(compute)) return compute;
  }
  fail({.found = "compute '" + name + "'",
        .expected = "one of float32, bfloat16, tfloat32",
        .where = "--compute"});
}

class Arenite : public Contestant {
 public:
  Arenite(const data::Split& train, const ContestantOptions& options)
      : train_(train.first(train.count - train.count % options.batch)),
        session_({.workers = options.workers, .device = options.device}),
        trainer_(
            session_, nn::model(options.network).layers, train.shape(),
            {.batch = options.batch,
             .optimizer = optim::sgd({.lr = options.learning_rate, .momentum = options.momentum}),
             .compute = compute_of(options.compute),
             .kernels = options.kernels.empty() ? runtime::KernelChoices()
                                                : runtime::KernelChoices::read(options.kernels)}),
        chosen_(!options.kernels.empty()) {
    trainer_.prepare(&train_, nullptr);
  }

  void first_step() override {
    std::atomic<bool> stop = false;
    train::FitOptions one{.epochs = 1};
    one.progress_seconds = 0;
    one.on_progress = [&](const train::Progress&) { stop = true; };
    one.stop = &stop;
    begun_ = trainer_.fit(train_, one).train.samples % train_.count;
  }

  Turn run(double seconds) override {
    std::atomic<bool> stop = false;
    Turn turn;
    train::FitOptions epoch{.epochs = 1};
    epoch.stop = &stop;
    const auto start = Clock::now();
    const Timer timer(stop, seconds);
    do {
      const train::Metrics now = trainer_.fit(train_, epoch).train;
      // An epoch that was stopped is gone on with.
      turn.samples += now.samples - std::exchange(begun_, now.samples % train_.count);
      if (now.samples > 0) turn.loss = now.loss;
    } while (!stop);
    turn.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return turn;
  }

  Json profile(double seconds) override {
    std::atomic<bool> stop = false;
    train::FitOptions profiled{.epochs = 1};
    profiled.profile_steps = 1000;
    profiled.stop = &stop;
    const Timer timer(stop, seconds);
    const train::EpochReport report = trainer_.fit(train_, profiled);
    begun_ = report.train.samples % train_.count;
    return report.profile ? parse_json(runtime::to_json(*report.profile)) : Json();
  }

  std::string version() const override { return "Arenite on " + starpu_; }
  std::string configuration() const override {
    if (session_.spaces().front().memory == MemoryKind::device) {
      return std::string(
                 "as `arenite train --device cuda` runs it: lanes chosen from network and batch, "
                 "tasks recorded as CUDA graphs, batches copied ahead") +
             (chosen_ ? "; kernels of a file" : "");
    }
    return "as `arenite train` runs it: lanes and tasks chosen from network and batch; "
           "denormals flushed";
  }
  int lanes() const override { return trainer_.shards() * trainer_.lanes(); }

 private:
  const data::Split train_;
  runtime::Session session_;
  train::Trainer trainer_;
  bool chosen_;             // kernels, by measurement
  std::int64_t begun_ = 0;  // samples of an epoch that has not ended
  /// "StarPU 1.3.10"
  const std::string starpu_ = session_.description().substr(0, session_.description().find(','));
};

}  // namespace

std::unique_ptr<Contestant> make_arenite(const data::Split& train,
                                         const ContestantOptions& options) {
  return std::make_unique<Arenite>(train, options);
}

}  // namespace arenite::bench
