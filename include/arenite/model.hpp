// Models: a graph compiled once, then evaluated or trained many times.
//
//   runtime::Session session;
//   Model model(session, graph::parse(script, operators()), {{"weight", {data, bytes}}});
//   model.evaluate({{"image", pixels}}, {logits});
//
// Compiling plans every byte and builds every task, and splits the batch of inputs in lanes that
// run side by side, where there is enough work and every operator can (graph::split_batch).
// Evaluating copies the inputs in and the outputs out, and calls no allocator in between. What the
// graph replaces in a buffer is there in the next evaluation (see graph::keep_state). A graph
// that says how it is trained (graph::Training) has training steps too, over the same parameters.
//
// Sizes that the graph leaves open (graph/run_time_sizes.hpp) are said with each call:
//
//   model.evaluate({{"image", pixels}}, {logits}, {{"rows", 40}});
//
// The memory is that of the largest sizes, whose programs are built first. One of smaller sizes is
// planned within it, when it is first asked for or ahead, by `prepare`. One that would not fit (its
// ops may be fused and ordered in another way) lets the blocks grow, between steps.
//
// One thread at a time may use a model: another one's call throws Error. Several models may be used
// by several threads at once.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/target.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/kernel.hpp>
#include <arenite/runtime/kernel_choices.hpp>
#include <arenite/runtime/session.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arenite {

/// A value that goes into a model or comes out of it.
struct Port {
  std::string name;
  DType type = DType::float32;
  Shape shape;
  std::vector<std::string> size_names = {};  ///< of an input's axes, as graph::Value has them

  std::int64_t bytes() const noexcept { return shape.elements() * size_of(type); }
};

/// What a model keeps between its evaluations. Of values of one name in several classes the first
/// has it, of constants, parameters, optimizer states, buffers, and the others are called as
/// "optimizer_state/weight.velocity".
struct StatePort : Port {
  graph::StorageClass cls = graph::StorageClass::buffer;  ///< or parameter, or optimizer_state
};

/// Bytes under a name, borrowed for one call. Dense, in row-major order.
struct NamedBytes {
  std::string_view name;
  const void* data = nullptr;
  std::optional<std::int64_t> bytes;  ///< checked against the shape where they are given
};

struct ModelOptions {
  std::string name = "model";
  graph::TargetProfile target = graph::default_target();
  /// "cpu", or "cuda" or "cuda:1" where the session has that device; empty: all of the session's.
  std::string device;
  bool cudnn = true;  ///< on GPUs, cuDNN's kernels where there are such; else all others
  runtime::Compute compute = runtime::Compute::float32;  ///< tfloat32 on GPUs alone
  /// As in train::TrainerOptions: shards of the batch, lanes of a shard, shards under way together.
  int shards = 0, lanes = 0, shards_at_once = 0;
  std::uint64_t seed = 1;  ///< of first values that have none of their own
  plan::ArenaLayout layout = plan::ArenaLayout::overlay;
  /// Do chains of ops in one go where an operator can: convolution, ReLU and pooling; dense and
  /// ReLU; a dense weight's gradient and its update.
  bool fuse = true;
  /// Kernels to take where they were measured; for other ops the table's own order counts.
  runtime::KernelChoices kernels;
  bool cuda_graphs = true;  ///< on GPUs, record what a task does once and launch it in one go
  /// Keep data sets in the memory of GPUs, which then gather their batches themselves; else a CPU
  /// worker does, and batches are copied. None: where all sets take at most a quarter of it.
  std::optional<bool> resident_data = std::nullopt;
  /// Of sizes that the graph leaves to a run, for all runs of this model: see graph::at_sizes.
  graph::SizeValues sizes;
  /// Of how many smaller sizes programs are kept beside those of the largest; those used last stay.
  int sizes_kept = 4;
};

/// A program that a model has.
struct ModelProgram {
  /// As Model::entries; of several for one also of which batch of an update it is the first time,
  /// "accumulate.2", or the last, "train.3".
  std::string entry;
  graph::SizeValues sizes;       ///< all that the model leaves open
  std::int64_t arena_bytes = 0;  ///< of the blocks of one step, which all programs share
  /// How it fits there: by its "own plan", by the "cut of the largest" in shards and lanes, or in
  /// "grown blocks".
  std::string fit;
  double milliseconds = 0;  ///< that it took to build
  long runs = 0;
};

/// What a caller has a file keep beside a model's states.
using SavedWords = std::vector<std::pair<std::string, std::string>>;

/// Of a file in the safetensors format. Throws Error on one that is damaged.
SavedWords saved_words(const std::filesystem::path& path);

class Model {
 public:
  /// Compiles the graph. Constants are copied; what the graph declares that persists may stand
  /// among them, and begins with that instead of its own first value. Throws Error on whatever
  /// is wrong with the graph, on a device that the session does not have, on sizes that at_sizes
  /// refuses, on a constant with a size that is left open, on products in tfloat32 on the CPU, and
  /// on a constant that is missing, unknown, given twice or of another size.
  Model(runtime::Session& session, graph::Graph graph, std::span<const NamedBytes> constants,
        const ModelOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  /// In the order of their declarations; unnamed outputs are "output_0", "output_1", … Sizes that
  /// are left open are at their bounds.
  const std::vector<Port>& inputs() const noexcept;
  const std::vector<Port>& outputs() const noexcept;
  /// The same of an entry, at these sizes, those not given at their bounds. Throw Error as `run`.
  std::vector<Port> inputs_of(std::string_view entry, const graph::SizeValues& sizes = {}) const;
  std::vector<Port> outputs_of(std::string_view entry, const graph::SizeValues& sizes = {}) const;

  /// Ways to run it: "train", "accumulate" and "averaged", where there are such, "evaluate", and
  /// the graph's own (graph/entries.hpp), which take only the inputs that their outputs need.
  const std::vector<std::string>& entries() const noexcept;
  /// What a run may say, in the order of their first mention.
  std::vector<graph::RunTimeSize> open_sizes() const;
  /// Builds what runs at these sizes, which are no step; those not given are at their bounds.
  /// Throws Error as graph::at_sizes.
  void prepare(const graph::SizeValues& sizes);
  /// Those that there are, the largest first.
  std::vector<ModelProgram> programs() const;
  /// Frees programs and memory, then throws what steps under way found. Of a closed model
  /// everything that needs these throws Error.
  void close();

  /// Runs the graph once: reads the inputs, each named once, and writes all outputs, in order.
  /// Throws Error on an input that is missing, unknown, given twice, null or of another size, on
  /// another number of outputs or a null one, and on what only a run can find out (an index out of
  /// range): the op that finds it writes nothing, and nothing behind it changes a buffer. What ops
  /// before it have replaced in a buffer's own bytes (see `copies`) stays replaced. Sizes as in
  /// `prepare`.
  void evaluate(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                const graph::SizeValues& sizes = {});

  /// The same with the means of parameters that the graph's training keeps, in their place; before
  /// a first step those are the parameters. Throws Error where it keeps none.
  void evaluate_averaged(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                         const graph::SizeValues& sizes = {});

  /// Any of them: what the calls around it do, or one of the graph's own. Throws Error as
  /// `evaluate` does, and on an entry that there is not.
  void run(std::string_view entry, std::span<const NamedBytes> inputs,
           std::span<void* const> outputs, const graph::SizeValues& sizes = {});

  bool is_trainable() const noexcept;
  /// One training step: as `evaluate`, then one update of each parameter. Outputs are those from
  /// before it. Without any places for them it returns as soon as the inputs are copied (unless an
  /// update may take several batches), and what the step finds out is thrown by a later call.
  /// Throws Error on a model that has no training.
  void train_step(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                  const graph::SizeValues& sizes = {});

  /// The same without the update: the batch's gradient waits for those of later ones, and a step of
  /// training takes the mean of all since the last update, its own among them. Everything else that
  /// a step does to what persists is done. The sum is that of as many shards as an update may take:
  /// where these are a power of two, all there, and equal batches in one lane each, the bits are
  /// those of one batch in so many shards. Returns when it is
  /// done. An update before all batches are there is built when it first comes. Throws Error as
  /// well on more batches than training takes (graph::Training::accumulate).
  void accumulate(std::span<const NamedBytes> inputs, std::span<void* const> outputs,
                  const graph::SizeValues& sizes = {});

  /// What optimizer steps are scaled by: a state, changed at will between them. Throw Error on a
  /// model that has no training, on a rate below 0 and on one that is not finite.
  float learning_rate();
  void set_learning_rate(float rate);
  /// Parameters that were to be trained, but that the loss does not depend on: they stay as they
  /// are.
  const std::vector<std::string>& untrained() const noexcept;

  /// Parameters, optimizer states, buffers; in this order, each in that of their declarations.
  /// Counted here, int64, under these names unless somebody else has them: "accumulated" [2], how
  /// many batches wait for an update, and how many it may take, where that is several; and last,
  /// where training draws random numbers, "position" [1], how many samples it has drawn so far.
  const std::vector<StatePort>& states() const noexcept;
  /// Bytes of one of them, until the next evaluation, step or `prepare`. Waits for the steps under
  /// way, and throws what they found. Throws Error on an unknown name.
  std::span<std::byte> state(std::string_view name);
  /// Copies them in. Throws Error as `state` does, on another number of bytes, and as
  /// `set_learning_rate`.
  void set_state(std::string_view name, std::span<const std::byte> bytes);

  /// All states in one file, which is replaced as a whole (in the safetensors format); of gradients
  /// that wait for an update only if there are any. `said`, texts by name, are kept beside them,
  /// for `saved_words`. Throws Error.
  void save(const std::filesystem::path& path, const SavedWords& said = {});
  /// Throws Error on a file that is damaged, or holds other names, types or shapes; then all states
  /// are what they were.
  void load(const std::filesystem::path& path);

  /// The memory of one evaluation, or of one training step where there are such, at the largest
  /// sizes: arenas, blocks, bounds.
  const plan::StepPlan& plan() const noexcept;
  void print_plan(std::ostream& out) const;
  /// Where new versions of values are copies, and why, as "replace_slice #2: relu #3 reads the old
  /// version later". The others are written in place.
  const std::vector<std::string>& copies() const noexcept;
  long runs(std::string_view entry) const;
  long evaluations() const noexcept;
  long train_steps() const noexcept;

 private:
  friend class Sweeps;  // src/model/sweeps.hpp
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite
