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
#include <string_view>
#include <utility>
#include <vector>

namespace arenite::train {

inline NetworkOptions network_options(const TrainerOptions& options, std::int64_t batch,
                                      bool training) {
  return {.batch = batch, .training = training, .init_range = options.init.range};
}

/// For some of its lanes at least.
bool uses_cpu(const runtime::Session& session);

struct Trainer::Impl {
  using Splits = std::list<std::pair<data::Split, Samples>>;
  using State = std::map<std::pair<graph::StorageClass, std::string>, std::vector<std::byte>>;

  /// Epochs that were begun, between two events.
  struct Going {
    const Samples* train;
    const Samples* validation;  ///< null: there is none
    int epochs, epoch = 0;      ///< of these
    bool shuffle;
    std::uint64_t seed;
    int patience;
    Plateau plateau;
    long profile_steps;
    const std::atomic<bool>* stop;
    bool in_epoch = false, profiles = false;
  };

  /// Rows of samples on their way through a sweep, copied from wherever they are.
  struct Stretch {
    std::string entry;
    std::int64_t asked;                         ///< rows; 0: of a number that suits
    std::vector<std::vector<std::byte>> bytes;  ///< by column
    Samples samples;                            ///< over these
  };

  Build build;
  std::optional<Shape> image;  // that images of splits have
  TrainerOptions options;
  Network network;  // at the whole batch, in training
  Model model;
  Sweeps sweeps;
  State saved;  // that programs lack, until some have it
  /// What optimizers keep of parameters that are frozen here and were trained elsewhere: they wait
  /// in `saved` for whoever trains them again.
  std::vector<Kept> carried;
  Splits splits;  // that were seen
  std::shared_ptr<const std::vector<std::string>> metric_names;
  std::size_t kept_sums = 0;                                     // numbers of all outputs
  std::optional<std::pair<std::vector<Port>, Port>> predicting;  // what goes in and comes out
  std::list<Stretch> stretches;
  std::vector<Port> inputs;           // of training
  std::vector<const Column*> chosen;  // of the samples that are asked about now
  CostMeter meter;
  float rate;            // as the programs have it: asking a device would be a copy
  bool running = false;  // a sweep
  bool fitting = false;  // and its callbacks
  std::optional<Going> going;
  std::optional<std::string> as_script;  // once somebody has asked
  Facts identity;                        // of what is known before any data
  RunPlace place;
  std::optional<Epochs> epochs;    // that `fit` has begun
  Facts of_epochs;                 // none: nobody has asked yet
  std::optional<Facts> continues;  // the identity of the run that was resumed, until `fit` begins

  Impl(runtime::Session& session, Build build, std::optional<Shape> image, TrainerOptions options);

  bool averages(Weights weights) const {
    return weights == Weights::averaged && options.optimizer.averaging.has_value();
  }
  std::string evaluation(Weights weights = Weights::averaged) const {
    return averages(weights) ? "averaged" : "evaluate";
  }

  /// Over the first samples that are trained on; null before there are some.
  const Swept* training() const { return sweeps.first("train"); }
  const graph::BatchCut& cut() const { return training() ? training()->cut : sweeps.preview().cut; }
  const runtime::ProgramSpec& spec() const {
    return training() ? training()->whole->spec() : sweeps.preview().spec;
  }

  Splits::iterator find(const data::Split& split);
  /// Of a split, checked. Valid until it is released.
  const Samples& samples_of(const data::Split& split, bool training);
  /// Null: none.
  const Samples* samples_to_validate(const Validation& given);
  void refuse_while_profiled() const;
  /// All that is needed exists afterwards, or nothing has changed.
  void prepare(const Samples* train, const Samples* test, Weights weights = Weights::averaged);
  /// Of a sweep that computes with them, where no step has made any yet.
  void begin_means(const Swept& of, Weights weights);

  /// When a sweep pauses.
  struct Limits {
    long steps = 0;      ///< 0: none
    double seconds = 0;  ///< likewise
    const std::atomic<bool>* stop = nullptr;
  };

  /// For such columns, and so many rows of them; 0: a number that suits.
  Stretch& stretch_of(std::string_view entry, const std::vector<const Column*>& columns,
                      std::int64_t rows);
  /// The columns for these inputs, in their order; until the next call.
  const std::vector<const Column*>& columns_of(const Samples& samples,
                                               const std::vector<Port>& inputs);
  Metrics step(const Samples& batch);
  void predict(const Samples& samples, std::span<std::byte> into, Weights weights);
  /// Whether they are evaluated by copies: a sweep over themselves would take longer to make.
  static bool are_few(const Samples& samples);
  Metrics evaluate_few(const Samples& test, Weights weights);
  /// What they are of a batch; throws Error where there are none.
  const Port& prediction();

  class Counted;
  /// Steps of a sweep, from sample `done` on, which goes along.
  void run(Swept& of, std::int64_t& done, const Limits& limits);
  void begin(const Samples& train, const Samples* validation, const FitOptions& how);
  void begin_epoch(Swept& of);
  /// `stepped` is called behind the steps, before the epoch ends.
  Event advance(const Limits& limits, const std::function<void()>& stepped = {});
  EpochReport fit(const Samples& train, const Samples* validation, const FitOptions& how);
  void end_profile();
  Metrics evaluate(const Samples& test, Weights weights);

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
  /// Behind a validation, whose place knows how many were no better.
  void lower_rate(const Plateau& plateau);
  /// Whether this validation is the best so far.
  bool is_best(const Metrics& validation);

  /// What the model keeps, but for what sweeps add up.
  std::vector<Kept> kept() const;
  Kept kept(std::string_view name) const;
  /// Where it is now.
  std::span<std::byte> state_of(graph::StorageClass cls, const std::string& name);
  /// It is somewhere: in programs, or waits for some.
  bool has_state(graph::StorageClass cls, const std::string& name) const {
    return sweeps.has_state(cls, name) || saved.contains({cls, name});
  }
  /// All that a file has of what training keeps, or weights alone: parameters and buffers.
  State states_of(const io::TensorFile& file, const std::string& where,
                  bool weights_alone = false) const;
  /// All of a file's states in place of those there are.
  void take_all(const io::TensorFile& file, const std::string& where);
  /// For the programs that have it, now or once there are some.
  void set(graph::StorageClass cls, const std::string& name, std::span<const std::byte> bytes);
  /// Of a file; the rest stays.
  void take(State taken);
  void put(State given);
  /// Gives programs what they have of it; what is new in them keeps its first value.
  void restore(State& state);
  /// Ends what there is over these samples; what is kept stays.
  void release(const Samples& samples);

  /// It is no longer the run that was resumed, or begun.
  void forget_epochs();
  /// Of a run's identity what is known before any data, and all of its numerics.
  Facts known_facts() const;
  Facts numerics() const;
  /// The network as a script, where it is the same graph for all batches; else nothing.
  const std::string& script();
};

}  // namespace arenite::train
