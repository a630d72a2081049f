// A step's memory: where every storage of a scheduled graph lives, and the edges that makes
// necessary.
//
//   plan::StateLayout state;
//   plan::StepPlan plan = plan::plan_step(graph, schedule, state, {.in_flight =
//   plan::InFlight(4)});
//
// `plan_step` turns a graph and its tasks into planning problems, solves them and translates the
// answers back. Every space has blocks of its own. Blocks are named; programs that use blocks of
// one name share them (the largest need decides its size). Pure: knows no StarPU, allocates only
// what it returns, safe from any thread.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/plan/plan.hpp>
#include <arenite/plan/solve.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::plan {

enum class ArenaLayout : std::uint8_t {
  overlay,  ///< one block: the backward arena takes the space of activations as they die
  two,      ///< a block for forward and what is saved, a block for backward
  reset,    ///< one block, forgotten whole between the phases: unsound for training, refused
};

std::string_view to_string(ArenaLayout layout) noexcept;
ArenaLayout parse_arena_layout(std::string_view text);

/// How many tasks of a step may be under way at once: what reuse may rely on. What it does rely on
/// becomes edges between tasks, so that more tasks in flight mean fewer edges, and more memory.
class InFlight {
 public:
  /// Each lane's tasks in their order, but for updates, the lanes side by side.
  static constexpr InFlight lanes() noexcept { return {}; }
  /// As many as the data allows: no edge is added.
  static constexpr InFlight unlimited() noexcept { return InFlight(all, 0); }
  /// At most `tasks` of them in the schedule's order: task i ends before task i + tasks begins.
  /// With 1 that is one after the other. Throws Error below 1.
  explicit InFlight(std::size_t tasks);
  constexpr InFlight() noexcept = default;

  constexpr bool is_lanes() const noexcept { return tasks_ == 0; }
  constexpr bool is_unlimited() const noexcept { return tasks_ == all; }
  constexpr std::size_t tasks() const noexcept { return tasks_; }  ///< 0: lanes

  friend constexpr bool operator==(InFlight, InFlight) = default;

 private:
  static constexpr std::size_t all = static_cast<std::size_t>(-1);
  constexpr InFlight(std::size_t tasks, int) noexcept : tasks_(tasks) {}

  std::size_t tasks_ = 0;
};

std::string to_string(InFlight in_flight);  ///< "lanes", "unlimited", "4"

struct BlockPlan {
  /// "state", "input", "output", "step", or "forward" and "backward"; in another space than the
  /// default one followed by "@" and the space: "step@cuda:0/device".
  std::string name;
  Space space;
  std::int64_t bytes = 0;
  bool per_task_set = false;  ///< one copy for each task set: inputs and outputs
  bool persistent = false;    ///< outlives steps

  friend bool operator==(const BlockPlan&, const BlockPlan&) = default;
};

/// What follows a block's name in this space: nothing in the default one.
std::string block_suffix(const Space& space);

/// One phase's placements in a block.
struct ArenaPlan {
  Phase phase = Phase::forward;
  std::string block;
  std::int64_t peak = 0;      ///< bytes of the block that hold its values at some time
  std::int64_t separate = 0;  ///< sum of the same storages, each allocated for itself

  friend bool operator==(const ArenaPlan&, const ArenaPlan&) = default;
};

struct Placement {
  graph::StorageId storage;  ///< a root
  std::string name;
  std::size_t block =
      0;  ///< index in StepPlan::blocks; external storages (the host's constants) have none
  std::int64_t offset = 0, bytes = 0;
  graph::StorageClass cls = graph::StorageClass::activation;
  Phase phase = Phase::forward;  ///< of the op that first writes it
  bool saved = false;            ///< written in forward, still read in backward
  bool external = false;         ///< bound by address when the program is built

  friend bool operator==(const Placement&, const Placement&) = default;
};

struct TaskEdge {
  graph::TaskId before, after;

  friend auto operator<=>(const TaskEdge&, const TaskEdge&) = default;
};

/// Offsets of what outlives steps, in each space. Shared by all programs over one "state" block: a
/// name of a class keeps its place until it is released, and nothing else is put there.
class StateLayout {
 public:
  /// Offset of the named storage; adds it when it is new. Throws Error when it is known with
  /// another size.
  std::int64_t place(graph::StorageClass cls, const std::string& name, std::int64_t bytes,
                     const Space& space = {});
  /// Throws Error when there is none of that name.
  std::int64_t offset(graph::StorageClass cls, const std::string& name,
                      const Space& space = {}) const;
  std::int64_t bytes(const Space& space = {}) const;
  /// Gives a place to whatever comes next and fits in it: nothing may have it any more. Does
  /// nothing where there is none of that name.
  void release(graph::StorageClass cls, const std::string& name, const Space& space = {});

 private:
  struct Block {
    std::map<std::pair<graph::StorageClass, std::string>, std::pair<std::int64_t, std::int64_t>>
        places;                                  // offset, bytes
    std::map<std::int64_t, std::int64_t> holes;  // bytes by offset, none next to another
    std::int64_t bytes = 0;
    std::int64_t take(std::int64_t size);
  };
  std::map<std::string, Block> blocks_;  // by space, whatever its capacity
};

struct StepPlan {
  ArenaLayout layout = ArenaLayout::overlay;
  std::vector<BlockPlan> blocks;
  std::vector<ArenaPlan> arenas;
  std::vector<Placement> placements;  ///< by storage id
  std::vector<TaskEdge> reuse_edges;  ///< beyond the schedule's own, each implied by no other
  std::vector<Plan> packings;         ///< the solved problem of each transient block
  /// No placement of the packings' buffers needs less. They have gaps where an op that holds
  /// regions leaves them dead for a while; between ops they keep their bytes to the last one.
  std::int64_t lower_bound = 0;
  std::int64_t separate = 0;         ///< sum of the transient storages allocated one by one
  bool optimal = false;              ///< every packing's peak equals its bound
  double critical_path = 0;          ///< µs, estimated, with the reuse edges
  double critical_path_without = 0;  ///< µs, estimated, without them

  /// Throws Error when the storage has no place.
  const Placement& placement(graph::StorageId root) const;
  std::int64_t transient_bytes() const noexcept;  ///< sum of the transient blocks

  friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

struct StepOptions {
  ArenaLayout layout = ArenaLayout::overlay;
  bool reuse = true;  ///< false: every storage has bytes of its own (the oracle's reference)
  InFlight in_flight;
  /// A step has several packings, most of them solved at once.
  Options solve = {.effort = Effort::fast};
};

/// Places every storage of the graph. Persistent ones, and constants on a device, get their place
/// from `state`. Outputs (the
/// graph's list, and storages of that class) get bytes of their own for each task set, so that a
/// caller may read a step's while the next one runs.
/// Throws Error when the layout is `reset` and values cross from forward to backward (it names
/// them), when two spaces differ in their capacity only, or when tasks are not in a topological
/// order.
StepPlan plan_step(const graph::Graph& graph, const graph::Schedule& schedule, StateLayout& state,
                   const StepOptions& options = {});

/// What is to be packed into one transient block.
struct StepProblem {
  std::string block;  ///< its name
  Space space;
  std::vector<graph::StorageId> storages;  ///< roots, in the problem's order
  Problem problem;  ///< with a precedence; a buffer is named after its storage and the storage's id
};

/// The problems that plan_step solves: StepPlan::packings has their answers, in this order. Throws
/// Error as plan_step does.
std::vector<StepProblem> step_problems(const graph::Graph& graph, const graph::Schedule& schedule,
                                       const StepOptions& options = {});

/// All of a step's problems as one, and the packings as a plan of it: for files, bounds over all
/// spaces, and verify(). Throws Error where two blocks are in one space, as in the layout `two`.
Problem whole_problem(std::span<const StepProblem> problems);
Plan whole_plan(const StepPlan& plan);

/// Checks a step's plan from first principles:
///  - every op is scheduled once, every edge leads to a later task, and a path leads from each op
///    to those that need its bytes
///  - what an op touches has a place of its size, aligned and inside a block of its space;
///  constants
///    are external, and nothing else is
///  - persistent storages lie in a persistent block, inputs and outputs in one of each task set,
///  all
///    others in neither
///  - no two storages share a byte unless both are transient, neither is an output, and every
///  access
///    of one happens before every access of the other
///  - a task said to be staging touches external bytes and blocks of its task set only, and follows
///    staging tasks only
///  - the bounds do not contradict the placements
/// Nothing the plan says of a storage is believed: classes, sizes and spaces are the graph's.
/// Shares no code with `plan_step` but graph::accesses and graph::dependencies, which define what
/// an op touches and follows. `phase`, `saved` and `arenas` serve reports and are not checked.
/// Throws Error that names the tasks and storages.
void verify_step(const graph::Graph& graph, const graph::Schedule& schedule, const StepPlan& plan);

/// Checks that programs may share blocks by name: a name stands for one space and one kind of
/// block, and in persistent blocks each storage's name for the same bytes in every plan, which
/// overlap no other's. Expects plans that `verify_step` accepts. Throws Error that names both
/// storages.
void verify_together(std::span<const StepPlan* const> plans);

}  // namespace arenite::plan
