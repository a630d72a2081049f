// Trains a network on samples: plans once, then submits steps.
//
//   train::Trainer trainer(session, model, data.shape(), {.batch = 64, .optimizer = optim::sgd({.lr
//   = 0.02f})}); std::cout << trainer.plan(); trainer.fit(data.train, {.epochs = 10, .validation =
//   &data.test});
//
// It runs on the devices of its session. A Trainer owns its programs and their blocks. It builds
// them when it first sees the data; from then on a step registers no handle and calls no allocator.
// One thread at a time.
#pragma once

#include <arenite/data/dataset.hpp>
#include <arenite/model.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>
#include <arenite/runtime/session.hpp>
#include <arenite/train/objective.hpp>
#include <arenite/train/optimizer.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::train {

/// How parameters begin.
struct Initializer {
  std::uint64_t seed = 1;
  /// none: what each layer asks for, U(−1/√fan_in, 1/√fan_in) unless it says otherwise, as
  /// PyTorch's layers do; else U(−range, range).
  std::optional<float> range;
};

struct TrainerOptions {
  std::int64_t batch = 64;
  /// So many batches make a step, whose gradients are added up: shards of it (see below), each of
  /// them cut further where `shards` is given too.
  std::int64_t accumulate = 1;
  nn::Loss loss = nn::cross_entropy();  ///< of images; a Build has its own
  optim::Optimizer optimizer = optim::sgd({.lr = 0.02f, .momentum = 0.9f});
  Initializer init;
  /// Shards of a batch, whose gradients are complete by themselves and are added in a fixed tree,
  /// and lanes of a shard, which run side by side; at most 64 lanes in all. 0: chosen from the
  /// network and the batch alone, so that the bits do not depend on the machine; one lane in each
  /// of several shards that are given, and one shard of lanes that are.
  int shards = 0, lanes = 0;
  /// How many shards are under way together: fewer need fewer bytes, and the bits are the same. 0:
  /// enough for all workers; on GPUs all.
  int shards_at_once = 0;
  plan::ArenaLayout layout = plan::ArenaLayout::overlay;
  /// Do chains of ops in one go where an operator can: convolution, ReLU and pooling; dense and
  /// ReLU; a dense weight's gradient and its update.
  bool fuse = true;
  /// With bfloat16, convolutions, dense layers and matrix products round what they multiply to it,
  /// forward and backward; they add in float32, and everything is kept in float32. With tfloat32,
  /// which GPUs only have, their tensor cores round it to TF32.
  runtime::Compute compute = runtime::Compute::float32;
  /// Kernels to take where they were measured; for other ops the table's own order counts.
  runtime::KernelChoices kernels;
  /// Costs that lanes and tasks are chosen from, and lanes' devices.
  graph::TargetProfile target = graph::default_target();
  /// On GPUs, record what a task does once and launch it in one go.
  bool cuda_graphs = true;
  /// Keep data sets in the memory of GPUs, which then gather their batches themselves; else a CPU
  /// worker does, and batches are copied. None: where all sets take at most a quarter of it.
  std::optional<bool> resident_data = std::nullopt;
};

/// Means over the samples of a sweep over a set.
struct Metrics {
  double loss = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();  ///< 0 to 1; NaN: nobody tells
  std::int64_t samples = 0;
  double seconds = 0;
  /// All of the objective's, and their names.
  std::array<double, most_metrics> values = {};
  std::shared_ptr<const std::vector<std::string>> names = {};

  /// Throws Error on a name that the objective has not.
  double operator[](std::string_view name) const;
};

struct Progress {
  int epoch = 0;  ///< from 0
  int epochs = 0;
  std::int64_t done = 0, total = 0;  ///< samples of this epoch
  double loss = 0, accuracy = 0;     ///< of the samples done
  double seconds = 0;                ///< of this epoch, training only
};

struct EpochReport {
  int epoch = 0;  ///< from 0
  /// On the batches as they pass, and the seconds of training them; of an epoch that was stopped
  /// and gone on with, all of them.
  Metrics train;
  std::optional<Metrics> validation;
  /// The validation's loss is below those of all epochs before, whole ones.
  bool best = false;
  float learning_rate = 0;  ///< of the epoch; a plateau may have lowered that of the next
  /// Of whole batches, when FitOptions asks for it and the last epoch began.
  std::optional<runtime::Profile> profile;
};

/// What to evaluate behind each epoch: images, samples, or nothing. Borrowed.
struct Validation {
  const data::Split* split = nullptr;
  const Samples* samples = nullptr;

  Validation(std::nullptr_t = nullptr) {}
  Validation(const data::Split* images) : split(images) {}
  Validation(const Samples* any) : samples(any) {}
  explicit operator bool() const noexcept { return split || samples; }
};

/// Lowers the learning rate where validations are no better.
struct Plateau {
  int patience = 0;     ///< epochs in a row that were no better; 0: it never does
  float factor = 0.1f;  ///< times so much, each time
  float least = 0;      ///< but never below this
};

struct FitOptions {
  int epochs = 10;
  bool shuffle = true;
  std::uint64_t seed = 1;  ///< of the shuffling
  Validation validation = nullptr;
  /// Called once, when the first step of all has ended.
  std::function<void()> on_first_step;
  std::function<void(const EpochReport&)> on_epoch;
  /// Called every `progress_seconds`, between steps; 0: after each.
  std::function<void(const Progress&)> on_progress;
  double progress_seconds = 0.25;
  /// Called every `save_seconds`, or whenever the number of steps of all is a multiple of
  /// `save_steps`, when no step is under way: what Trainer::save is for.
  std::function<void()> on_save;
  double save_seconds = 0;
  long save_steps = 0;
  /// Training ends where so many epochs in a row were no better than one before; 0: never.
  int patience = 0;
  Plateau plateau = {};
  /// Records where this many of the last epoch's first steps on whole batches spend their time: 0,
  /// for none, to runtime::max_profile_steps. Room is taken for no more steps than the epoch has.
  long profile_steps = 0;
  const std::atomic<bool>* stop =
      nullptr;  ///< when it turns true, training ends after the steps under way
};

/// How far to go until the next event.
struct Advance {
  long steps = 0;      ///< at most; 0: to the epoch's end
  double seconds = 0;  ///< no step is begun after so long; 0: no limit
};

/// What has become of a run.
struct Event {
  enum class Kind : std::uint8_t {
    progress,  ///< in the middle of an epoch
    epoch,     ///< one has ended, and was validated
    ended,     ///< all have, or training has: nothing was done
  };
  Kind kind = Kind::ended;
  Progress progress = {};
  EpochReport report = {};  ///< of `epoch`; in the middle of one its `train` so far
  bool stopped = false;     ///< before the epoch's end

  explicit operator bool() const noexcept { return kind != Kind::ended; }
};

/// What steps asked of the system, training and evaluation together: every call of the process
/// while they were under way, whoever made it. Between stretches of steps, and in callbacks,
/// nothing is counted.
///
/// All of them count, from the first on: the warm-up is the building of their programs, which
/// submits each task once, dry, before any data moves. Both sums stay 0, but for one heap call a
/// session that StarPU may make where there are more workers than cores.
struct StepCosts {
  long training_steps = 0, evaluation_steps = 0;  ///< of sweeps that came to their end
  /// As in arenite/runtime/heap_calls.hpp. None where nobody counts, or before the first sweep.
  std::optional<long> heap_calls, map_calls;
};

/// What a network says of samples, row by row.
struct Predictions {
  DType type = DType::float32;
  Shape shape;                   ///< [M, …]
  std::vector<std::byte> bytes;  ///< dense, row-major

  /// Throws Error where they are of another type.
  template <class T>
  std::span<const T> values() const {
    check(dtype_of<T>);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

 private:
  void check(DType asked) const;
};

/// What is evaluated, and predicts.
enum class Weights : std::uint8_t {
  averaged,  ///< the means that training keeps, where it does (optim::Optimizer::averaging)
  current,   ///< the parameters
};

/// Prints the table of arenas, blocks, bounds and pinning.
class PlanReport {
 public:
  explicit PlanReport(std::string text) : text_(std::move(text)) {}
  friend std::ostream& operator<<(std::ostream& out, const PlanReport& report);

 private:
  std::string text_;
};

class Trainer {
 public:
  /// `image` is [H, W, C]. Throws Error when the model cannot take it, or an option is out of
  /// range.
  Trainer(runtime::Session& session, nn::Layer model, Shape image, TrainerOptions options);
  /// Any network, of any inputs.
  Trainer(runtime::Session& session, Build build, TrainerOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Builds the programs for these splits now; `fit` and `evaluate` do it when needed. The splits'
  /// bytes are borrowed until the trainer ends, or they are released. Throws Error on a split that
  /// is empty, incomplete or of another shape; the trainer is then as it was. Of fewer samples than
  /// a batch all are one.
  void prepare(const data::Split* train, const data::Split* test);
  void prepare(const Samples* train, const Samples* test);

  /// Lets go of bytes that were borrowed: ends the programs over them, and epochs over them that
  /// were begun. What training keeps stays, and so do programs over others. Samples that were never
  /// seen are none.
  void release(const data::Split& split);
  void release(const Samples& samples);

  /// Returns the last epoch's report. Epochs go on counting over several calls, and one that was
  /// stopped is gone on with where this call goes over the same data in the same order. Its
  /// functions may evaluate and save; what one throws ends the call, and the epoch may be gone on
  /// with. Samples, as splits, are borrowed until the trainer ends or releases them, and have to
  /// stay as they are. Throws Error as `prepare` does, and what a step reports.
  EpochReport fit(const data::Split& train, const FitOptions& options = {});
  EpochReport fit(const Samples& train, const FitOptions& options = {});

  /// The same for loops of one's own, which `fit` is one of: begins epochs, then goes on until
  /// something is to be told. In between all but another `fit` may be called; `resume`,
  /// `take_weights`, `take_states` and `take_over` end them.
  ///
  ///   trainer.begin(samples, {.epochs = 10});
  ///   while (auto event = trainer.advance({.seconds = 0.1})) …
  ///
  /// `begin` calls none of its options' functions. Both throw as `fit`.
  void begin(const data::Split& train, const FitOptions& options = {});
  void begin(const Samples& train, const FitOptions& options = {});
  Event advance(const Advance& far = {});

  /// One step on a batch that comes from anywhere, and is copied: at most `batch` samples, in
  /// columns for all inputs. Returns what they were worth before it. A number of samples that is
  /// new, or a new type, shape or scale of a column, lets a program be built. The eight of these
  /// that were used last stay, those of predictions among them, and steps like theirs allocate
  /// nothing. Between events of epochs it is a step of its own. Throws Error as `fit`.
  Metrics step(const Samples& batch);

  /// By the means of parameters that `optimizer.averaging` keeps, if any, or by these. Throws as
  /// `fit`.
  Metrics evaluate(const data::Split& test, Weights weights = Weights::averaged);
  Metrics evaluate(const Samples& test, Weights weights = Weights::averaged);

  /// The objective's predictions of any number of samples, by the parameters as `evaluate`, in
  /// batches. The last one is filled up with its last sample, unless samples meet in the network:
  /// then it has a program of its own, as a batch of fewer samples in `step`. Only the columns that
  /// predictions depend on are looked at, during the call alone; others need not be there. The
  /// first call for columns of some types, shapes and scales builds a program and takes room for a
  /// stretch of samples, which stay; later ones allocate nothing but what they return. Throws Error
  /// as `evaluate`, and where the objective has none.
  Predictions predict(const Samples& samples, Weights weights = Weights::averaged);
  /// The same into a caller's bytes, as many as `shape_of_predictions` has. Allocates nothing.
  void predict(const Samples& samples, std::span<std::byte> into,
               Weights weights = Weights::averaged);
  bool has_predictions() const noexcept;
  /// Of so many samples: [count, …].
  Shape shape_of_predictions(std::int64_t count) const;
  DType type_of_predictions() const;
  /// Parameters that the loss does not depend on: they stay as they are.
  const std::vector<std::string>& untrained() const noexcept;
  /// What samples are given by name, for batches of the whole size.
  const std::vector<Port>& inputs() const noexcept;
  const std::vector<std::string>& metrics() const noexcept;  ///< their names, of all Metrics
  std::int64_t batch() const noexcept;                       ///< samples of a step

  /// Writes all that this run keeps, and how far it is, into one file, which is replaced as a
  /// whole: parameters, the optimizer's state, buffers; what has to be the same for a run to go on
  /// with it (network, training, seeds, batch, data and their order), and what decides the bits
  /// besides (version, instructions, lanes, kernels); the network as a script, for `saved_run`; and
  /// what is `said`. It is in the safetensors format, which others read too. Between steps, so from
  /// `on_save` as well. Throws Error before `fit` has seen any data, and where the file cannot be
  /// written; an older one is then what it was.
  void save(const std::filesystem::path& path, const SavedWords& said = {});
  /// Goes on with the run of a file that `save` wrote, also in the middle of an epoch: `fit` then
  /// ends in the bits of a run that was never interrupted. Returns what differs that may change
  /// bits, "version 0.2 for 0.1"; empty: nothing. Throws Error on a file that is damaged or of
  /// another run, and names what differs; the trainer is then as it was. What is only known with
  /// the data is checked by `fit`.
  std::string resume(const std::filesystem::path& path);
  /// Takes parameters and buffers alone, for a run of its own. Throws Error as `resume`.
  void take_weights(const std::filesystem::path& path);
  /// Goes on, with a new epoch, from what another trainer has kept by now of all that this one
  /// keeps, by name, type and shape: of a network whose parameters are frozen or freed on the way,
  /// or trained in another way. What that optimizer keeps of parameters that are frozen here waits,
  /// and is saved, for whoever trains them again; means of what was frozen there are its values.
  /// Throws Error in the middle of a fit of either.
  void take_over(Trainer& before);
  /// Takes all that persists, whatever run it is of: to evaluate it, or to predict with it.
  void take_states(const std::filesystem::path& path);
  int epochs() const noexcept;  ///< done, of all

  PlanReport plan() const;
  /// The blocks in that table; none before the programs are built.
  std::vector<runtime::BlockUse> blocks() const;
  /// What each pass of the compiler did to the training step, what it left, and why; then every
  /// program's tasks, ops and edges.
  void explain(std::ostream& out) const;
  /// Of the training step: as it runs, or as it will before any data is known. Valid until the
  /// trainer ends or sees new data, and so is `undivided`.
  const plan::StepPlan& step_plan() const;
  int shards() const noexcept;
  int lanes() const noexcept;  ///< of a shard
  int shards_at_once() const noexcept;
  /// Why the batch is not cut in lanes, though several may have been asked for: "batch 'N': …".
  /// Empty where it is, if only in one.
  const std::string& undivided() const noexcept;
  /// How many of the kernels that TrainerOptions::kernels names a step on a whole batch takes;
  /// those of ops that read a data set's size in their operands aside.
  std::size_t chosen_kernels() const;

  /// Parameters in declaration order, with their bytes (valid until the trainer ends or sees new
  /// data; of a session with a GPU until the next step, see ProgramSet::state).
  struct NamedParameter {
    std::string name;
    Shape shape;
    std::span<float> values;
  };
  std::vector<NamedParameter> parameters();

  /// SHA-256 over names, shapes and bytes of all parameters, in hex.
  std::string weights_sha256();

  /// What training keeps, as Model::states: parameters, optimizer states, buffers, among them
  /// "learning_rate".
  std::vector<StatePort> states() const;
  /// Bytes of one of them, valid as those of `parameters`. Throws Error on an unknown name, and
  /// before samples were seen that have a use for it, unless it was set.
  std::span<const std::byte> state(std::string_view name);
  /// Before any samples were seen, too. Throws Error on an unknown name, on another number of
  /// bytes, and on a learning rate that is none.
  void set_state(std::string_view name, std::span<const std::byte> bytes);

  float learning_rate();
  void set_learning_rate(float learning_rate);  ///< throws Error unless it is at least 0
  long steps() const noexcept;                  ///< training steps submitted
  StepCosts costs() const noexcept;             ///< of all sweeps so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite::train
