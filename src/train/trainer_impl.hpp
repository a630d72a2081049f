// The insides of a trainer.
#pragma once

#include <arenite/train/trainer.hpp>

#include "src/train/checkpoint.hpp"
#include "src/train/step_costs.hpp"
#include "src/train/trainer_programs.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace arenite::train {

struct Trainer::Impl {
  runtime::Session& session;
  nn::Layer model;
  Shape image;
  TrainerOptions options;

  plan::StateLayout state;    // of all programs so far: later ones add to it, and keep its places
  compile::Compiled preview;  // the main program before any data is known
  std::unique_ptr<TrainerPrograms> programs;
  std::vector<TrainerPrograms::Wanted> wanted;  // that there are programs for, or were, and will be
  TrainerPrograms::State saved;                 // that programs lack, until others have it
  CostMeter meter;
  bool running = false;
  Facts identity;  // of what is known before any data
  RunPlace place;
  std::optional<Epochs> epochs;    // that `fit` has begun
  Facts of_epochs;                 // none: nobody has asked yet
  std::optional<Facts> continues;  // the identity of the run that was resumed, until `fit` begins

  Impl(runtime::Session& s, nn::Layer m, Shape i, TrainerOptions o);

  /// Several batches are one in shards.
  void accumulate();
  TrainerSetup setup() const {
    return {model, image, options, session.spaces(), session.workers()};
  }
  /// The main program's, where nobody knows whether a GPU can hold the set.
  StepRequest first_request() const;

  /// The training program that runs; null before there is one.
  const SplitPrograms* training() const { return programs ? programs->training() : nullptr; }
  const graph::BatchCut& cut() const { return training() ? training()->cut : preview.cut; }
  const runtime::ProgramSpec& spec() const {
    return training() ? training()->whole->spec() : preview.spec;
  }

  /// Checks a split; true when there are no programs for it yet.
  bool is_new(const data::Split* split, bool training) const;
  /// All that is needed exists afterwards, or nothing has changed.
  void prepare(const data::Split* train, const data::Split* test);
  void build(const std::vector<TrainerPrograms::Wanted>& splits);

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
  /// Runs one sweep over a split, from this sample on. Returns how many are done then.
  std::int64_t run(SplitPrograms& of, const Breaks& breaks, std::int64_t done = 0);
  std::int64_t trained(SplitPrograms& of, const Breaks& breaks);

  /// No step has made any yet.
  bool has_no_means();
  std::span<double> statistics() {
    return programs->set().state<double>(graph::StorageClass::buffer, names::statistics);
  }
  /// Of the epoch under way, while its steps wait.
  void keep_sums() { std::ranges::copy(statistics(), place.sums.begin()); }
  Metrics metrics(std::int64_t samples, double seconds);

  /// Of these epochs, and of what this trainer goes on with where that is in the middle of one.
  void begin(const Epochs& begun);
  /// Whether this validation is the best so far.
  bool is_best(const Metrics& validation);

  /// Where it is now.
  std::span<const std::byte> state_of(graph::StorageClass cls, const std::string& name);
  /// Of a file; the rest stays.
  void take(TrainerPrograms::State taken);

  /// Of a run's identity what is known before any data, and all of its numerics.
  Facts known_facts() const;
  Facts numerics() const;
};

}  // namespace arenite::train
