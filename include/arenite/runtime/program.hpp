// Programs: planned, scheduled graphs made into StarPU tasks that are built once and resubmitted.
//
//   runtime::ProgramSet programs(session, {{.name = "train", .graph = …, .schedule = …, .plan =
//   …}}); runtime::Program& train = programs["train"]; for (…) {
//     *train.input<std::int64_t>("cursor") = …;   // waits until the next task set is free
//     train.submit();                             // returns at once
//   }
//   train.wait();                                 // throws what a task reported
//
// A ProgramSet owns the blocks, and programs the handles over them and their tasks. After
// construction, submitting and waiting allocate nothing, register nothing and decide nothing. One
// thread at a time may use a set; programs of one set never run together (submitting one waits for
// the other).
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/block.hpp>
#include <arenite/runtime/kernel.hpp>
#include <arenite/runtime/kernel_choices.hpp>
#include <arenite/runtime/profile.hpp>
#include <arenite/runtime/session.hpp>

#include <array>
#include <atomic>
#include <iosfwd>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::runtime {

/// Which of the kernels that support an op is taken.
struct KernelWishes {
  Compute compute = Compute::float32;
  std::string without = {};    ///< none whose name begins so; empty: any
  KernelChoices choices = {};  ///< these first
};

/// The selector that `graph::select` and `graph::place` use: the kernel that was chosen, else the
/// first of the table that supports an op on the kind of device where it runs. It throws Error for
/// an op that multiplies on the CPU and is to do so in tfloat32, and on a chosen kernel that is
/// none of the table's; one that the op cannot have as it lies there is passed over.
std::unique_ptr<graph::KernelSelector> kernel_selector(const KernelTable& table,
                                                       KernelWishes wishes = {});

/// Read-only bytes for a constant of the graph. Borrowed: must outlive the programs.
struct ConstantBinding {
  const void* data = nullptr;
  std::int64_t bytes = 0;
};

struct ProgramSpec {
  std::string name;
  /// Programs of one entry share the blocks that a task set has for itself, inputs and outputs;
  /// empty: nobody else's.
  std::string entry = {};
  graph::Graph graph;  ///< after `select`
  graph::Schedule schedule;
  graph::TargetProfile target = graph::default_target();  ///< that the schedule was made for
  plan::StepPlan plan;
  std::map<std::string, ConstantBinding> constants;
};

/// What a program has unless its options say otherwise: 2, and 3 on a GPU, where the host arms the
/// step behind the next one while that runs, and may take longer than a short step.
int task_sets_of(const plan::StepPlan& plan) noexcept;

/// Bytes that a block has at least, for programs that are added later.
struct BlockRoom {
  plan::BlockPlan block;
  std::string entry;  ///< whose programs have it, of one that task sets have for themselves
};

struct ProgramOptions {
  /// How many steps may be under way: at least 2; 0: as many as `task_sets_of` the plans.
  int task_sets = 0;
  /// Record what each task does on a GPU once, as a CUDA graph, and launch that in one go.
  bool record = true;
  /// Check the plans first. Only for showing what becomes of a wrong one.
  bool verify = true;
  std::uint64_t seed = 1;  ///< of first values that have none of their own
  std::vector<BlockRoom> room = {};
};

/// An input of one int64 that counts: `first` in the first of some steps, then by `stride`.
struct Counter {
  std::string_view input = {};  ///< empty: none
  std::int64_t first = 0, stride = 1;
};

/// What a step has found in its data, where `fault` of an op's operator says what: no other program
/// would have mended it.
class StepError : public Error {
 public:
  using Error::Error;
};

/// Steps to run in one go.
struct RunRequest {
  long steps = 1;  ///< at most; at least 0
  /// What else changes from step to step is data of the program.
  std::array<Counter, 2> counters = {};
  const std::atomic<bool>* stop = nullptr;  ///< no step is begun after it turned true
  double seconds = 0;                       ///< nor after so long; 0: no limit
};

/// A block as the table of a program set lists it.
struct BlockUse {
  std::string name;  ///< "step", "train/input.0"
  std::int64_t bytes = 0;
  std::string pinned;  ///< as Block::pinned
};

/// The table of a plan's arenas and blocks, before anything is allocated.
void print_plan(std::ostream& out, const ProgramSpec& spec);

class ProgramSet;

class Program {
 public:
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& name() const noexcept;

  /// The named input's bytes of the task set that the next `submit` will use. Waits until that
  /// set's previous step has ended, and those of another program of this entry, as `submit` does.
  /// Throws Error on an unknown name or another element type.
  template <class T>
  T* input(std::string_view name) {
    return static_cast<T*>(input(name, sizeof(T)));
  }

  /// Starts the next step; steps run in order, at most `task_sets` at once. Throws Error when an
  /// earlier step is known to have failed, of this program or of the one that ran before it.
  void submit();

  /// Runs steps and waits for them: each worker that is of use holds one StarPU task, and carries
  /// out the program's tasks in it, without StarPU and the host between them. Bits are those of
  /// `submit`, and up to `task_sets` steps overlap alike. Inputs but those that count stay as the
  /// task sets hold them. Returns how many steps there were: fewer than asked for only when
  /// stopped. Throws Error as `submit` and `wait` do, and on a counter that is none.
  /// ARENITE_CREW=off in the environment of whoever builds the program makes it submit each task
  /// instead, for tools that watch StarPU's.
  long run(const RunRequest& request);

  /// Waits for all submitted steps of this program. Throws Error when one failed, naming the
  /// earliest: what was left of its updates, and those of the steps behind it, did not happen. The
  /// step submitted next starts afresh.
  void wait();

  /// The index-th of the graph's outputs, as the last submitted step left it. Waits; throws as
  /// `wait` does, and on a wrong index or element type. Valid until the next `submit` of a program
  /// of this entry.
  template <class T>
  std::span<const T> output(std::size_t index) {
    const std::span<const std::byte> bytes = output_bytes(index, dtype_of<T>);
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  long steps() const noexcept;  ///< submitted since the beginning

  /// Records where the next `steps` steps spend their time, at most max_profile_steps. Waits for
  /// the steps under way, throwing what they reported, and allocates; the steps themselves still do
  /// not. Submit them in one go: the time between them, or in another program, counts as the
  /// runtime's. Throws Error on another number. A profile under way is begun anew.
  void start_profile(long steps);

  /// Waits and gives the profile of the steps since; `wait` still reports a step that failed.
  /// Throws Error when no profile was started.
  Profile stop_profile();
  /// Waits and forgets the profile under way, if there is one.
  void drop_profile() noexcept;

  /// Tasks, their ops and edges, and handle classes, for people.
  void explain(std::ostream& out) const;
  const ProgramSpec& spec() const noexcept;

 private:
  friend class ProgramSet;
  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  void* input(std::string_view name, std::size_t element_bytes);
  long submit_steps(const RunRequest& request, std::int64_t until);
  std::span<const std::byte> output_bytes(std::size_t index, DType type);

  std::unique_ptr<Impl> impl_;
};

class ProgramSet {
 public:
  ProgramSet(Session& session, const KernelTable& kernels, std::vector<ProgramSpec> specs,
             const ProgramOptions& options = {});
  ~ProgramSet();
  ProgramSet(const ProgramSet&) = delete;
  ProgramSet& operator=(const ProgramSet&) = delete;

  /// One more program over the blocks that there are, which it must fit in, and over the state that
  /// there is, which stays. Not between the steps of a profile or a capture. Throws Error on a name
  /// that is taken, on what is wrong with the plan, and on what has no place.
  Program& add(ProgramSpec spec);
  /// Ends a program. Waits for its steps, and throws what they reported; then it stays. What only
  /// it has of the state is lost. Throws Error on an unknown name.
  void remove(std::string_view name);

  /// Throws Error on an unknown name.
  Program& operator[](std::string_view name);
  bool has(std::string_view name) const noexcept;

  /// Bytes of a parameter, optimizer state or buffer, shared by all programs. Waits for the steps
  /// under way. What is in a device's memory is given as a copy, which the next step puts back: the
  /// span is good until then. Throws Error on an unknown name or a size that is no multiple of T's.
  template <class T>
  std::span<T> state(graph::StorageClass cls, std::string_view name) {
    const std::span<std::byte> bytes = state_bytes(cls, name, sizeof(T));
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// The same, of the first class that has the name.
  template <class T>
  std::span<T> state(std::string_view name) {
    return state<T>(class_of(name), name);
  }

  const std::vector<Block>& blocks() const noexcept;
  /// All that the programs take: these blocks, and the status words of those that run on devices.
  std::vector<BlockUse> block_uses() const;

  /// Every program's tasks, ops, edges and handle classes.
  void explain(std::ostream& out) const;

  /// The table people see before training: arenas, blocks, bounds, pinning.
  void print_table(std::ostream& out, std::string_view program) const;

 private:
  friend class Program;
  struct Impl;
  graph::StorageClass class_of(std::string_view name) const;
  std::span<std::byte> state_bytes(graph::StorageClass cls, std::string_view name,
                                   std::size_t element_bytes);

  std::unique_ptr<Impl> impl_;
};

}  // namespace arenite::runtime
