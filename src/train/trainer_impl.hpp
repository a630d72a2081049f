// The insides of a trainer.
#pragma once

#include <arenite/model.hpp>
#include <arenite/train/trainer.hpp>

#include "src/model/ports.hpp"
#include "src/model/sweeps.hpp"
#include "src/train/checkpoint.hpp"
#include "src/train/objective.hpp"
#include "src/train/step_costs.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace arenite::train {

struct Trainer::Impl {
  using State = std::map<std::pair<graph::StorageClass, std::string>, std::vector<std::byte>>;

  Build build;
  std::optional<Shape> image;  // that images of splits have
  TrainerOptions options;
  Network network;  // at the whole batch, in training
  Model model;
  Sweeps sweeps;
  State saved;  // that programs lack, until some have it
  std::list<std::pair<data::Split, data::Samples>> splits;  // that were seen
  std::shared_ptr<const std::vector<std::string>> metric_names;
  std::size_t kept_sums = 0;  // numbers of all outputs
  CostMeter meter;
  bool running = false;
  Facts identity;  // of what is known before any data
  RunPlace place;
  std::optional<Epochs> epochs;    // that `fit` has begun
  Facts of_epochs;                 // none: nobody has asked yet
  std::optional<Facts> continues;  // the identity of the run that was resumed, until `fit` begins

  Impl(runtime::Session& session, Build build, std::optional<Shape> image, TrainerOptions options);

  Network network_at(std::int64_t batch, bool training) const;
  std::string evaluation() const { return options.optimizer.averaging ? "averaged" : "evaluate"; }

  /// Over the first samples that are trained on; null before there are some.
  const Swept* training() const { return sweeps.first("train"); }
  const graph::BatchCut& cut() const { return training() ? training()->cut : sweeps.preview().cut; }
  const runtime::ProgramSpec& spec() const {
    return training() ? training()->whole->spec() : sweeps.preview().spec;
  }

  /// Of a split, checked. Valid until the trainer ends.
  const data::Samples& samples_of(const data::Split& split, bool training);
  /// All that is needed exists afterwards, or nothing has changed.
  void prepare(const data::Samples* train, const data::Samples* test);

  /// When a sweep pauses, and ends early.
  struct Breaks {
    const std::atomic<bool>* stop = nullptr;
    double seconds = 0;  ///< between two pauses; 0: after each step
    std::function<void(std::int64_t done)> pause;
    std::function<void()> first_step;  ///< has ended
    long save_steps = 0;  ///< `save` is called when the steps of all are a multiple of it; 0: never
    std::function<double()> save_in;  ///< seconds, until it is called besides; none: never
    std::function<void()> save;
  };

  class Counted;
  /// Runs one sweep, from this sample on. Returns how many are done then.
  std::int64_t run(Swept& of, const Breaks& breaks, std::int64_t done = 0);
  std::int64_t trained(Swept& of, const Breaks& breaks);
  EpochReport fit(const data::Samples& train, const data::Samples* validation,
                  const FitOptions& how);
  Metrics evaluate(const data::Samples& test);

  /// No step has made any yet.
  bool has_no_means();
  /// What a sweep adds up of an output of the network.
  std::span<double> sums(std::size_t output);
  /// Of the epoch under way, while its steps wait.
  void keep_sums();
  void put_back_sums();
  Metrics metrics(std::int64_t samples, double seconds);

  /// Of these epochs, and of what this trainer goes on with where that is in the middle of one.
  void begin(const Epochs& begun);
  /// Whether this validation is the best so far.
  bool is_best(const Metrics& validation);

  /// What the model keeps, but for what sweeps add up.
  std::vector<Kept> kept() const;
  /// Where it is now.
  std::span<const std::byte> state_of(graph::StorageClass cls, const std::string& name);
  /// Of a file; the rest stays.
  void take(State taken);
  /// Gives programs what they have of it; what is new in them keeps its first value.
  void restore(State& state);

  /// Of a run's identity what is known before any data, and all of its numerics.
  Facts known_facts() const;
  Facts numerics() const;
};

}  // namespace arenite::train
