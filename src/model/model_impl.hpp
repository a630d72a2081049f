// The insides of a model: its programs, by sizes and entry, over one program set.
#pragma once

#include <arenite/model.hpp>
#include <arenite/runtime/program.hpp>

#include "src/io/safetensors.hpp"
#include "src/model/plans.hpp"
#include "src/model/sweeps.hpp"

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace arenite {

[[noreturn]] void refuse_without_training();
compile::Options options_of(const runtime::Session& session, const ModelOptions& options);

struct Model::Impl {
  /// How a program is run, and what became of it.
  struct Run {
    runtime::Program* program = nullptr;  // none has been built
    std::vector<Port> inputs, outputs;
    std::vector<std::size_t> pieces;  // as in compile::Compiled
    std::int64_t samples = 0;         // of a step
    std::string position;             // the input that counts those before; empty: none does
    Fit fit = Fit::own_plan;
    double milliseconds = 0;  // that it took to build
    long count = 0;           // of runs
  };

  /// What runs at some sizes.
  struct Sized {
    graph::SizeValues sizes;  // all that the model leaves open
    std::vector<Run> runs;    // by way
    long last_used = 0;
  };

  /// One thread at a time.
  class Turn {
   public:
    /// Throws Error where another has its turn, and, unless it may be, on a closed model.
    explicit Turn(Impl& impl, bool may_be_closed = false);
    ~Turn() { impl_.busy.clear(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Impl& impl_;
  };

  Impl(ModelPlans of, const ModelOptions& options)
      : plans(std::move(of)),
        sizes_kept(options.sizes_kept),
        seed(options.seed),
        record(options.cuda_graphs),
        resident_data(options.resident_data) {}

  void build();
  void count_states(const std::string& position);
  std::unique_ptr<runtime::ProgramSet> made_set(std::vector<runtime::ProgramSpec> specs,
                                                std::vector<runtime::BlockRoom> room) const;
  void grow_blocks(std::vector<runtime::BlockRoom> room,
                   std::vector<runtime::ProgramSpec> more = {});
  void add_programs(std::vector<runtime::ProgramSpec> specs, bool fit);
  template <class F>
  void for_each_kept(const F& f);
  void for_each_persistent(const std::function<void(const plan::Placement&)>& f);
  bool keeps(graph::StorageClass cls, std::string_view name);
  bool draws_on_devices(std::int64_t bytes) const;
  void bind_constants(runtime::ProgramSpec& spec) const;
  Sized& at(const graph::SizeValues& sizes);
  Sized* find(const graph::SizeValues& sizes);
  Sized& make_sizes(const graph::SizeValues& sizes);
  void drop_unbuilt();
  void make_room();
  Run& run_of(Sized& sized, std::size_t way);
  std::pair<std::vector<Port>, std::vector<Port>> ports_at(const std::string& entry,
                                                           const graph::SizeValues& sizes) const;
  /// By name; throws Error on one that there is not.
  std::size_t entry(std::string_view name) const;
  /// What it would run now; throws Error where that may not be.
  std::size_t way(std::string_view entry) const;
  bool trains() const { return plans.graph().training.has_value(); }
  /// The entry is one of training's steps: "train", or "accumulate" behind it.
  bool trains(std::size_t entry) const {
    return trains() && entry <= (plans.graph().training->accumulate > 1 ? 1U : 0U);
  }
  Sized& largest() { return sized.front(); }
  const Sized& largest() const { return sized.front(); }

  void run(std::string_view entry, std::span<const NamedBytes> from, std::span<void* const> places,
           const graph::SizeValues& sizes);
  void check(const std::vector<Port>& inputs, const std::vector<Port>& outputs,
             std::span<const NamedBytes> from, std::span<void* const> places, bool needs_places);
  void begin_averages();
  void settle();
  std::span<std::byte> state(graph::StorageClass cls, std::string_view name);
  std::span<std::byte> state(std::string_view name);
  void set_state(std::string_view name, std::span<const std::byte> bytes);
  std::size_t state_number(std::string_view name) const;
  void check_batches(const std::string& name, const std::array<std::int64_t, 2>& counts) const;
  void check_state(std::size_t number, std::span<const std::byte> bytes) const;
  void expect_batches(const io::TensorFile& file, const std::filesystem::path& path) const;
  /// A state is of batches that wait for an update.
  bool waits(std::size_t number) const;
  std::span<std::byte> learning_rate();

  ModelPlans plans;
  const int sizes_kept;
  const std::uint64_t seed;
  const bool record;
  const std::optional<bool> resident_data;
  std::list<Sized> sized;  // the largest, then others as they came
  std::list<Swept> sweeps;
  std::string batch_size;      // the size that sweeps cut samples by
  SweepProgram preview_sweep;  // of a model that was opened for them
  std::optional<compile::Compiled> preview;
  std::vector<StatePort> states;
  std::vector<std::string> own_names;  // of the states, within their classes; empty: counted here
  std::vector<std::string> untrained;
  std::map<std::string, std::vector<std::byte>> constants;  // outlive the programs
  std::vector<const NamedBytes*> given;                     // by input, while it runs
  std::vector<std::string> copies;
  plan::StepPlan plan;                       // of the largest step
  std::unique_ptr<runtime::ProgramSet> set;  // none: closed
  std::vector<std::int64_t> drawn;  // by entry: samples, of all steps so far; training's is one
  std::array<std::int64_t, 2> batches{};  // that wait for an update, of how many it may take
  std::map<std::size_t, std::span<std::int64_t>> counted;  // states that are these, by number
  std::map<std::string, long, std::less<>> runs;           // by entry
  long uses = 0;
  std::atomic_flag busy;
};

}  // namespace arenite
