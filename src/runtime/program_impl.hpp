// The insides that ProgramSet and Program share.
#pragma once

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/plan/handle_classes.hpp>
#include <arenite/runtime/program.hpp>

#include "src/runtime/capture/capture.hpp"
#include "src/runtime/checked.hpp"
#include "src/runtime/device_task.hpp"
#include "src/runtime/profile_records.hpp"
#include "src/runtime/race_check.hpp"
#include "src/runtime/starpu.hpp"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace arenite::runtime {

class Crew;
struct BoundControl;

/// One op ready to run, with addresses of one task set.
struct BoundKernel {
  KernelFunction run = nullptr;
  std::shared_ptr<const void> state;
  std::vector<void*> operands, results;
  KernelCall call;
  bool updates_state = false;  ///< suppressed once this step or an earlier one has failed
  std::vector<Claim> claims;   ///< checked build only
  std::shared_ptr<const BoundControl> control;  ///< of an op that holds blocks, instead of `run`
};

/// One integer, of which 0 means no.
struct Condition {
  const void* address = nullptr;  ///< none: always yes
  DType type = DType::int64;

  bool holds() const noexcept;
};

/// One value becomes equal to another.
struct Copy {
  void* into = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::vector<Claim> claims;  ///< checked build only
};

struct BoundBlock {
  std::vector<BoundKernel> kernels;
  Condition next;             ///< a loop's next condition, taken before the copies
  std::vector<Copy> copies;   ///< at the block's end, in this order
  std::vector<Claim> claims;  ///< of that condition; checked build only
};

/// An `if` or a `loop`: see graph/regions.hpp for what they mean.
struct BoundControl {
  bool loop = false;
  Condition condition;
  const std::int64_t* trips = nullptr;  ///< none: as many as there may be
  std::int64_t max_trips = 0;
  std::int64_t* counter = nullptr;  ///< gets the number of the trip
  std::vector<Claim> counter_claims;
  std::vector<BoundBlock> blocks;
  std::vector<Copy> entry, exit;  ///< before a loop's first trip, and behind the last one
};

/// What all tasks of a program look at.
struct ProgramFlags {
  bool dry = true;                  ///< while the ring is primed: touch nothing
  std::atomic<bool> failed{false};  ///< a step has failed: later ones leave persistent state alone
  /// While steps are profiled. Changes when none is under way.
  StepRecords* records = nullptr;
  /// While their last ones are captured. At the process's end this stops beside steps under way.
  std::atomic<StepRecords*> captured{nullptr};

  bool keeps_records() const noexcept {
    return records != nullptr || captured.load(std::memory_order_relaxed) != nullptr;
  }
  void submitting(long step) const noexcept {
    if (records != nullptr) records->submitting(step);
    if (StepRecords* last = captured) last->submitting(step, take_turn(last));
  }
};

/// What a StarPU task of ours points at (`cl_arg`).
struct TaskBody {
  std::vector<BoundKernel> kernels;
  std::unique_ptr<DeviceTask> on_device;  ///< none: on the CPU
  ProgramFlags* flags = nullptr;
  StatusWord* status = nullptr;  ///< of the task set, and so of one step
  const long* step = nullptr;    ///< of the task set, too
  std::size_t number = 0;        ///< among the tasks of the set
  bool last = false;             ///< follows all others of its step
  OrderedTask order;
};

/// Runs its ops, one after another, on the worker that calls it.
void run_body(TaskBody& body) noexcept;

/// What StarPU calls for every task of ours; `body` is its TaskBody.
void run_task(void** buffers, void* body);

inline TaskBody& body_of(const starpu_task* task) { return *static_cast<TaskBody*>(task->cl_arg); }
inline OrderedTask& order_of(const starpu_task* task) { return body_of(task).order; }

/// One complete set of a program's tasks. Resubmitted as a whole, once its last step has ended.
class TaskSet {
 public:
  TaskSet() = default;
  ~TaskSet();  ///< no set of the program may be under way: tasks notify those of the next set
  TaskSet(const TaskSet&) = delete;
  TaskSet& operator=(const TaskSet&) = delete;

  /// Throws Error when StarPU refuses a task; the set can then be waited for, but not submitted
  /// again.
  void submit();
  void wait() noexcept;

  std::vector<starpu_task*> tasks;  // in topological order: those submitted never wait for the rest
  std::vector<std::vector<std::size_t>> predecessors;  // by task: numbers of those it follows
  std::deque<TaskBody> bodies;                         // stable addresses
  starpu_task* end = nullptr;                          // follows all others
  std::vector<starpu_task*> entries;                   // must follow the previous step
  OrderPoint submission;
  StatusWord status;
  long step = 0;  // the one last submitted

 private:
  std::size_t submitted_ = 0;
};

/// What the host sees of a persistent value in a device's memory: taken when it is asked for, and
/// put back before the next step.
struct Mirror {
  std::int64_t offset = 0;
  Block* block = nullptr;
  std::vector<std::byte> bytes;
  bool lent = false;
};

/// Whose programs share the blocks of their task sets.
inline const std::string& entry_of(const ProgramSpec& spec) {
  return spec.entry.empty() ? spec.name : spec.entry;
}

struct ProgramSet::Impl {
  Impl(const KernelTable& table, ProgramOptions chosen) : kernels(table), options(chosen) {}
  ~Impl();

  /// Blocks of one name: shared by all programs, or, one a task set, a single program's own.
  struct BlockGroup {
    std::string name;
    Space space;
    std::string owner;      // entry; empty for what all programs share
    std::size_t first = 0;  // in `blocks`
    std::size_t copies = 1;
  };

  void make_blocks(const std::vector<ProgramSpec>& specs);
  void warm_up_devices(const std::vector<ProgramSpec>& specs) const;
  /// Throws Error when a device has less than its blocks and these programs take.
  void check_memory(std::span<const ProgramSpec> specs) const;
  /// Throws Failure where a device's tasks copy from or to memory that CUDA could not pin.
  void check_pinned(const ProgramSpec& spec) const;
  void fill_constants(const ProgramSpec& spec);
  void check_fits(const ProgramSpec& spec) const;
  std::span<std::byte> lend(const plan::Placement& place, Block& block);
  void lend_state(const ProgramSpec& spec);  ///< all of it that is on devices
  void forget_copies(const ProgramSpec& removed);
  void take_back();  ///< what was lent; before a step, with none under way
  Program& make_program(ProgramSpec spec);
  void begin_state();
  std::span<std::byte> state(graph::StorageClass cls, std::string_view name,
                             std::size_t element_bytes);

  const BlockGroup* find_group(const ProgramSpec& spec, const plan::BlockPlan& block) const;
  std::size_t group(const ProgramSpec& spec, const plan::Placement& place) const;
  std::size_t block_index(const ProgramSpec& spec, const plan::Placement& place,
                          std::size_t set) const;
  /// Waits for the program that may be under way, unless it is `next`; throws what it reported.
  void activate(Program::Impl& next);
  void begin_capture(const CaptureRequest& request);

  const KernelTable& kernels;
  const ProgramOptions options;
  Session session;  // keeps StarPU alive as long as the programs
  std::vector<Block> blocks;
  std::deque<Ownership> owners;  // by block; checked build only
  std::vector<BlockGroup> groups;
  std::vector<std::unique_ptr<Program>> programs;
  bool is_made = false;  // with its first programs; more of them come and go
  std::map<std::pair<std::size_t, std::int64_t>, const void*> filled;  // constants on devices
  Program::Impl* active = nullptr;  // whose steps may be under way
  std::map<std::pair<graph::StorageClass, std::string>, Mirror> mirrors;  // of what persists
  std::unique_ptr<Capture> capture;  // none unless the environment asks for one
};

/// A class of bytes that a task touches.
struct ClassUse {
  std::size_t index = 0;
  bool writes = false;
};

/// A program's handles; no task may use them any more when they end.
struct ProgramHandles {
  ProgramHandles() = default;
  ~ProgramHandles();
  ProgramHandles(const ProgramHandles&) = delete;
  ProgramHandles& operator=(const ProgramHandles&) = delete;

  std::vector<plan::HandleClass> classes;                  // blocks are groups of the set here
  std::vector<std::vector<starpu_data_handle_t>> handles;  // [class][copy]
  std::vector<std::vector<ClassUse>> uses;                 // by task
};

/// A profile under way.
struct OpenProfile {
  StepShape shape;
  StepRecords records;
};

struct Program::Impl {
  Impl(ProgramSet::Impl& owner, ProgramSpec given);
  ~Impl();

  struct Slot {
    graph::ValueId value;
    std::vector<void*> addresses;  // by task set
  };

  void build();
  void make_handles();
  void name_kernels(std::vector<PreparedKernel>& prepared) const;
  void build_codelets();
  void try_out_tasks();  ///< those of devices, and records them where they are to be
  void clear_state();    ///< on devices, before anybody has seen it
  DeviceStatus& status_on(Device& device);
  void build_set(std::size_t number, const std::vector<PreparedKernel>& prepared);
  BoundKernel bind(graph::OpId op, const std::vector<PreparedKernel>& prepared, std::size_t number);
  std::shared_ptr<const BoundControl> bind_control(const graph::Op& op,
                                                   const std::vector<PreparedKernel>& prepared,
                                                   std::size_t number);
  std::vector<Copy> bind_copies(const graph::Op& op, const std::vector<graph::Handover>& handovers,
                                std::size_t number);
  Condition bind_condition(graph::ValueId value, std::size_t number);
  std::vector<Claim> claims_of(graph::OpId op, std::size_t number);
  /// Of one access of a value; none where its bytes are nobody else's.
  std::vector<Claim> claim(graph::ValueId value, bool writes, std::size_t number);
  Claim claim(const graph::Access& access, const plan::Placement& place, std::size_t number);
  std::byte* address(graph::ValueId value, std::size_t number);
  ErrorText fault(graph::OpId op, std::uint32_t code, std::size_t number);
  Slot slot(graph::ValueId value);
  const Slot& input(std::string_view name) const;  ///< throws Error on an unknown one
  CaptureShape capture_shape() const;
  void join_ring();
  StepShape shape() const;
  void check_whole() const;  ///< throws Error once StarPU has refused a task
  void drain() noexcept;     ///< waits, reports nothing
  void report();             ///< throws what the earliest failed step reported, and clears it

  ProgramSet::Impl& set;
  ProgramSpec spec;
  starpu_codelet codelet{}, device_codelet{};
  ProgramFlags flags;
  ProgramHandles guarded;                  // outlives the tasks
  std::deque<DeviceStatus> device_status;  // one for each device that the program uses
  std::deque<TaskSet> sets;
  std::unique_ptr<Crew> crew;  // none: `run` submits the tasks
  std::vector<Slot> inputs, outputs;
  std::size_t next = 0;  // the task set that is submitted next
  std::size_t last = 0;  // that of the last step
  long steps = 0;
  std::unique_ptr<OpenProfile> open_profile;  // none unless a profile was asked for
  bool broken = false;  // StarPU refused a task: the ring's edges no longer add up
};

}  // namespace arenite::runtime
