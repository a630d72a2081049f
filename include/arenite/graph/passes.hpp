// The passes between a front end's graph and a plan. The compiler alone runs them one behind the
// other, in the order of its table (src/compile/passes.cpp).
//
// Each takes a graph and leaves a graph that `verify` accepts (checked builds call it at the end of
// each). All are deterministic and depend on nothing but their arguments. An op that holds
// blocks is to them one op, which reads and writes what its blocks do. Those that take Remarks note
// there what they did, and what they left that is not far from it, with the first reason.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/graph.hpp>
#include <arenite/graph/remarks.hpp>
#include <arenite/graph/support.hpp>
#include <arenite/graph/target.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::graph {

// ---- modes -------------------------------------------------------------------------------------

/// What became of the ops that differ by mode.
struct ModeApplied {
  int ops = 0;
  /// The input, int64 [1], that some of them read: how many samples steps of training have drawn
  /// before this one. Empty: none does.
  std::string position;
  std::int64_t samples = 0;  ///< of a step, by which that counts
  /// Some are of the whole batch: shards would wait for each other.
  bool needs_whole_batch = false;
  /// The first that became one of a shard, for messages; empty: none did.
  std::string of_shard;
};

/// Makes ops that differ by mode what they are in this one (`OperatorDefinition::in_mode`), in
/// blocks too. Before gradients, which are those of what takes their place, and at known sizes. An
/// input for the position is declared where one is asked for, under a name that nobody has. What is
/// of a shard, of several that the batch is to be cut in, becomes an op that split_batch makes into
/// others. Throws Error where an op has no meaning in the mode.
ModeApplied apply_mode(Graph& graph, const OperatorTable& table, Mode mode, int shards = 1,
                       Remarks* remarks = nullptr);

// ---- tidying -----------------------------------------------------------------------------------

/// Drops what nobody needs: ops that no output, loss, state or status depends on, and results of
/// `if`s and values that loops carry. Of equal ops, which read the same bytes in one phase and
/// lane, keeps the first one that the others see, in blocks too; of equal ops without operands only
/// those of one element: larger ones are made anew more cheaply than kept. Makes ops what their
/// operators say they are as well (`OperatorDefinition::simplify`). What changes in a step is read
/// when it was read, and a copy of it stays one. An op with results placed by hand stays as it is,
/// and so does one that makes a new version of a buffer. Declared values stay. Returns how many ops
/// and results it dropped, and ops it made others.
int tidy(Graph& graph, const OperatorTable& table, Remarks* remarks = nullptr);

// ---- fusion ------------------------------------------------------------------------------------

/// Replaces chains of ops by the operators that do them in one go (`ChainOf`), the longest chain
/// first, and chains with those, until there are none. An intermediate value that anybody else
/// reads, a block among them, or that is an output or yielded, stays, and so does its chain. For
/// forward graphs, before their gradients, and once more after them for chains of gradients. A
/// chain may stand in a block, where it saves the same, but not across its edge. Returns how many
/// chains were replaced.
int fuse(Graph& graph, const OperatorTable& table, Remarks* remarks = nullptr);

/// The same for chains that end in an update of what persists, in the update's place: a gradient
/// that it alone reads needs no bytes any more. Behind whatever else may become of gradients.
int fuse_updates(Graph& graph, const OperatorTable& table, Remarks* remarks = nullptr);

/// Makes ops of formulas that read one another one op of the formula of both (`FormulaOf`), where
/// neither bytes that are read and written nor those that other ops have to go without become more.
/// What lies between them is one of its results where others read it behind it; one of them before
/// keeps them apart. Results keep their bits. Ops of formulas are those that say theirs
/// (`OperatorDefinition::formula`) and make no new versions of what persists. Behind whatever looks
/// for ops by their names. Returns how many ops became parts of others.
int fuse_formulas(Graph& graph, const OperatorTable& table, Remarks* remarks = nullptr);

// ---- shards and lanes --------------------------------------------------------------------------

/// One lane's samples within a batch.
struct LaneRows {
  int lane = 0;
  std::int64_t begin = 0, count = 0;
};

/// Splits `batch` samples into at most so many parts whose sizes differ by at most one: shards, and
/// each of them in lanes. Those without a sample are absent.
std::vector<LaneRows> lane_rows(std::int64_t batch, const BatchCut& cut);

/// A graph whose batch is split in lanes.
struct BatchGraph {
  Graph graph;
  BatchCut cut;           ///< of which there may be fewer than asked for
  std::string one_shard;  ///< why there are lanes of one shard instead of several; else empty
  std::vector<LaneRows> lanes;
  /// For each output of the whole, how many of the graph's outputs hold it, one behind the other:
  /// the lanes' rows of it, or all.
  std::vector<std::size_t> pieces;
  /// Of a graph to be trained: what adds up to its loss, in place of `graph.training->loss`.
  std::vector<ValueId> losses;
};

/// Splits the batch of a graph that says nothing of lanes itself. The batch is an axis with a name
/// (`Value::batch`), or the first axis of an input that has none; a value that nobody named joins
/// it where an operator demands so, never because it is as long by chance. Ops on it work share by
/// share, as their `of_share` says, on views of the rows of inputs; what shares add up to is added
/// with `sum` where it is read as a whole, or is an output. Ops that cannot, and what lies behind
/// them, see all samples at once, put together from the lanes' rows; `remarks` name them. Where
/// shards would wait for what such an op makes of all of them, all lanes are one shard's. Returns
/// none, with the reason there, where most of the work would be theirs, and tries the next batch
/// before. Throws Error where an operator's shares are of other shapes than it says. Needs the
/// operators `slice`, `sum`, `flatten`, `stack_columns` and `reshape`.
std::optional<BatchGraph> split_batch(const Graph& graph, const OperatorTable& table,
                                      const BatchCut& cut,
                                      const TargetProfile& target = default_target(),
                                      Remarks* remarks = nullptr);

/// Of a graph in shards, with its gradients: gives as many of them as may be under way at once
/// (1 or more) lanes of their own, in which the others follow, so that a later shard may have the
/// bytes of an earlier one. What is added up over shards is added as soon as two neighbours in the
/// tree of `sum` are there. Results keep their bits, however many are under way. Needs the operator
/// `sum`. Returns how many shards follow others.
int line_up_shards(Graph& graph, const OperatorTable& table, const BatchCut& cut, int at_once,
                   Remarks* remarks = nullptr);

// ---- gradients ---------------------------------------------------------------------------------

/// Called as soon as the gradient of `wrt[index]` is complete: every reader of the value that the
/// backward pass needs has been appended, so an update may be appended here.
using GradientDone = std::function<void(std::size_t index, ValueId gradient)>;

/// Appends the gradients of the sum of `losses` (scalars) to the builder's graph, from each
/// operator's own rule. Contributions to one value are summed in a fixed tree, lane 0 first, and
/// those of a shard before those of all. Returns one value for each `wrt`; ValueId{} for one that
/// no loss depends on.
/// An `if` goes backward as an `if`, which finds what the taken block saved; a block that does not
/// depend on a value yields zeros. A loop goes backward as a loop, from its last trip to its first,
/// which finds what each trip saved: max_trips times the bytes of one. Throws Error when a path
/// leads through an operator that has no gradient, or when a loss is given twice.
std::vector<ValueId> add_gradients(Builder& builder, const std::vector<ValueId>& losses,
                                   const std::vector<ValueId>& wrt, const GradientDone& done = {},
                                   const BatchCut& cut = {});

/// The name of the buffer that updates read the learning rate from, float32 [1].
inline constexpr const char* learning_rate_name = "learning_rate";
/// And of the optimizer state that counts steps, int64 [1], where the optimizer, a schedule or
/// means ask for their number.
inline constexpr const char* step_name = "step";

/// Throws Error on a rate below 0 or one that no float32 holds.
void check_learning_rate(double rate);

/// Throws Error on a decay that is not from 0 to below 1, and on steps below 1.
void check_averaging(const Averaging& averaging);

/// Throws Error on less than one batch an update, and on more than 64.
void check_accumulated(std::int64_t batches);

/// What a step of training does of an update for several batches. Their gradients are added up as
/// those of as many shards, in the midpoint tree: what is complete of it waits in states, no more
/// than the tree is deep.
struct BatchOfUpdate {
  int waiting = 0;  ///< sums of batches before
  int added = 0;    ///< how many of them, the last ones, its gradient is added to
  int batches = 1;  ///< whose mean gradient it updates parameters by; 0: it leaves that to others

  friend bool operator==(const BatchOfUpdate&, const BatchOfUpdate&) = default;
};

/// What the state of such a sum is called, "weight.gradient1".
std::string waiting_name(const std::string& parameter, int number);

/// Of up to `all` batches an update this one, behind `before` others, of which it may be the last
/// before all are there.
BatchOfUpdate batch_of_update(int all, int before, bool is_last);

/// Appends what `graph.training` says, which is taken from it: the gradients of the sum of
/// `losses`, its own or what adds up to it lane by lane (`split_batch`), and an update of each
/// parameter as soon as its gradient is complete. The learning rate is declared here; an
/// optimizer's states are named after the parameter, as "weight.velocity", and so is its mean,
/// "weight.average". What is asked for in each step needs the operators `full`, `accumulate`,
/// `average`, `check_loss`, `sum` and those that do any formula; gradients that wait for other
/// batches' need `assign`. An output that is a parameter becomes a copy from before the updates.
/// Returns the parameters that no loss depends on, and that stay as they are. Throws Error as
/// `add_gradients` does, on settings and names that there cannot be, and on a group's pattern that
/// no parameter has.
std::vector<ValueId> add_training(Graph& graph, const OperatorTable& table,
                                  const std::vector<ValueId>& losses, const BatchCut& cut = {},
                                  const BatchOfUpdate& part = {});

/// What the mean of a parameter is called, an optimizer state.
std::string average_name(const std::string& parameter);

/// Lets all that reads the parameters that `graph.training` averages read their means, which are
/// states. Throws Error where it averages none.
void use_averages(Graph& graph, const OperatorTable& table);

// ---- what persists -----------------------------------------------------------------------------

/// Lets parameters, optimizer states and buffers keep what the graph makes of them: results of ops
/// that are new versions of one, or of a view of one (`OperandSchema::renews`). Where nobody looks
/// at the old version's bytes later the result lives in them. Otherwise it has bytes of its own and
/// is assigned behind all other ops; an output that is the old version is copied before. Either way
/// everything in the step sees the version it names, the next step the last one. Needs the
/// operators `assign` and `identity`. Throws Error on two new versions of the same bytes of one
/// version, on one of a parameter or state that no op of phase update or init makes, and on one
/// made in a block of what lies outside. Returns how many versions are kept.
int keep_state(Graph& graph, const OperatorTable& table, Remarks* remarks = nullptr);

/// A new version that has bytes of its own, though its operator could have written the old one's.
struct InsertedCopy {
  OpId op;
  std::string reason;  ///< "relu 'conv1' reads the old version later", "'x' is an input", …
};

/// Where a graph, after keep_state and in_place, copies to make new versions; in program order,
/// with the first reason that stands against writing in place.
std::vector<InsertedCopy> inserted_copies(const Graph& graph);

// ---- sums --------------------------------------------------------------------------------------

/// Replaces `sum` over the results of several ops of one kind by the operator that sums as it goes
/// (`SumOf`), where nobody else reads those results: a gradient over all lanes that is written
/// once. It takes the lanes one after the other, where `sum` would have built a tree; a sum over
/// shards only `in_trees`, where the operator can keep the tree (`sum_tree`) and what is then kept
/// of all shards has no more bytes than the sum. Looks at the body only: blocks do not add lanes
/// up. Returns how many sums were replaced.
int merge_sums(Graph& graph, const OperatorTable& table, const BatchCut& cut = {},
               bool in_trees = true, Remarks* remarks = nullptr);

// ---- features ----------------------------------------------------------------------------------

/// Gives each lane a part of large weights that the step updates: some rows, which its worker keeps
/// in its own cache. Where lanes have few samples each, the ops that read such a weight then take
/// the samples of all lanes and one part of the weight (`OperatorDefinition::of_share`), and the
/// lanes hand each other samples instead of weights. Ops may change places. Needs the operators
/// `slice`, `stack_columns`, `join_columns` and `sum`. Where the lanes' ops on one weight depend on
/// each other, all weights stay whole, and so does one that a block reads: a block runs on one
/// worker, which needs all of it. Returns how many were split.
int split_features(Graph& graph, const OperatorTable& table,
                   const TargetProfile& target = default_target(), Remarks* remarks = nullptr);

// ---- rows --------------------------------------------------------------------------------------

/// Splits an op that can make its result by rows (`OperatorDefinition::of_share`), and the one op
/// that reads it and updates by rows, in parts that may run side by side, where the op is estimated
/// to take several tasks' time: one worker then makes a part of a large weight's gradient and
/// updates that part. Where there are several lanes, each has its parts. Their number depends on
/// the op, the lanes and the profile only; results keep their bits. Looks at the body only: a block
/// is one task. Needs the operator `slice`. Returns how many pairs of ops were split.
int split_rows(Graph& graph, const OperatorTable& table,
               const TargetProfile& target = default_target(), Remarks* remarks = nullptr);

// ---- updates -----------------------------------------------------------------------------------

/// Replaces updates of small parameters by one op that does them all (`GroupOf`), where the last of
/// them stands: on a GPU each would take less time than its launch. With it goes the making of a
/// gradient that sums few rows and that only its update reads. The gradients
/// are kept until then, which is why large ones are left alone. Results keep their bits but for
/// those sums, which may be rounded differently. Looks at the body only, as updates stand there.
/// Returns how many ops there are less.
int group_updates(Graph& graph, const OperatorTable& table, Remarks* remarks = nullptr);

// ---- kernels -----------------------------------------------------------------------------------

/// A kernel that was passed over for an op.
struct Refusal {
  std::string kernel;
  std::string_view why;  ///< as Support::why
};

/// What `select` must know of kernels; the runtime implements it on its kernel table.
class KernelSelector {
 public:
  virtual ~KernelSelector() = default;
  /// Whether there is a kernel for the op in that space, wherever its values are now.
  virtual bool has_kernel(const OpView& op, const Space& space) const = 0;
  /// The kernel for this op, with the layouts it has now, where it runs (`space_of`); throws Error
  /// when there is none.
  virtual std::string choose(const OpView& op) const = 0;
  /// What `choose` passes over before the kernel it takes, in that order. For people: slow.
  virtual std::vector<Refusal> refused(const OpView&) const { return {}; }
  /// Whether there is a kernel of that name where the op runs: what follows asks about such alone.
  virtual bool knows(const OpView&, const std::string& /*kernel*/) const { return true; }
  /// Whether the kernel can run the op with the layouts it has now.
  virtual Support supports(const OpView& op, const std::string& kernel) const = 0;
  virtual std::int64_t workspace(const OpView& op, const std::string& kernel) const = 0;
  virtual int wanted_halo(const OpView& op, const std::string& kernel,
                          std::size_t operand) const = 0;
  virtual bool writes_halo(const OpView& op, const std::string& kernel) const = 0;
};

// ---- placement ---------------------------------------------------------------------------------

/// Where a program runs.
struct Spaces {
  Space shared;              ///< what is in no lane, and what outlives a step
  std::vector<Space> lanes;  ///< by lane; others run where what they share is

  const Space& of_lane(int lane) const noexcept {
    return lane >= 0 && static_cast<std::size_t>(lane) < lanes.size()
               ? lanes[static_cast<std::size_t>(lane)]
               : shared;
  }

  friend bool operator==(const Spaces&, const Spaces&) = default;
};

/// Deals `lanes` lanes out on spaces, in order, so that what takes longest, of them all, takes
/// least: a lane takes `microseconds(space)`, one after the other. Ties go to the first. What lanes
/// share is in spaces[0]. With 0 lanes there is one a GPU, which does best with all of its samples
/// at once, or 8, where GPUs and the CPU share the work.
Spaces deal_out(std::span<const Space> spaces, int lanes,
                const std::function<double(const Space&)>& microseconds);

/// Gives every op and value a space, and copies what an op reads from another one, with
/// `identity`: once for all ops that read it there, and anew once its bytes have changed. Inputs
/// and outputs stay in the host's memory; so does what ops read and write for which the device has
/// no kernel, which hold blocks, or which fill inputs. A constant is declared anew, under
/// `constant_name`, where a device reads it. Copies of inputs are inputs: made ahead of the step.
/// Returns how many copies were made.
int place(Graph& graph, const OperatorTable& table, const Spaces& spaces,
          const KernelSelector& selector, Remarks* remarks = nullptr);

/// The name of a constant's bytes in a space: its own in the host's memory.
std::string constant_name(const std::string& name, const Space& space);

// ---- select ------------------------------------------------------------------------------------

/// Gives every op its kernel, its workspace, and the values between them their layouts. Kernels are
/// chosen for values without a halo; one that cannot run with the halos agreed on is replaced.
/// Throws Error when the replacement cannot read or write a halo that is there. Remarks: each op
/// with its kernel was done; of what was left, "relu 'relu3' by direct", each kernel passed over
/// before that.
void select(Graph& graph, const KernelSelector& selector, Remarks* remarks = nullptr);

/// Some op has its kernel or workspace, some value its place on a device or in an operand's bytes:
/// `place`, `select` or `in_place` have been over the graph, or a script says so.
bool is_selected(const Graph& graph);
/// Refuses kernels that somebody chose and that cannot run their ops with the layouts and
/// workspaces that these have: what `select` sees to of its own choices. Leaves out kernels that
/// are not here.
void check_kernels(const Graph& graph, const KernelSelector& selector);
/// The first op that needs a kernel and has none; none where all that need one have it.
OpId without_kernel(const Graph& graph);

// ---- tasks --------------------------------------------------------------------------------------

using TaskId = Id<struct TaskTag>;

/// Several ops of one lane that run one after another on one worker.
struct Task {
  std::vector<OpId> ops;  ///< in program order
  Phase phase = Phase::forward;
  int lane = Op::shared_lane;
  Space space;  ///< where its ops run
  /// Refills inputs: touches nothing that another step touches, so it may run a step ahead.
  bool staging = false;
  double microseconds = 0;           ///< estimate
  std::vector<TaskId> predecessors;  ///< by data, without those implied by others
};

/// Tasks in a topological order.
struct Schedule {
  std::vector<Task> tasks;

  const Task& operator[](TaskId id) const { return tasks.at(id.index); }
};

// ---- order -------------------------------------------------------------------------------------

/// What a graph comes to with its ops in the order that they have.
struct PlannedBytes {
  std::vector<std::int64_t> bytes;  ///< by block of the step: of a plan that takes little time
  std::vector<std::int64_t> least;  ///< by block: no plan needs less
  double microseconds = 0;          ///< of the critical path, estimated

  std::int64_t sum() const noexcept;  ///< of `bytes`
};

/// Moves ops of the body and of blocks where the step then needs fewer bytes: weights' gradients,
/// the last to read what the forward pass kept, come before those of layers' inputs. A lane's ops
/// change places among themselves, those of the forward pass apart from the others, and
/// `dependencies` are kept, so that all results keep their bits. Greedy orders that seem to save
/// bytes are asked of `planned`, the best first; the first one is taken that needs at least 1/128
/// fewer bytes, of which no block needs more than any plan of the given order would, and whose
/// critical path is no longer by 1/128, or by a sixth of the share of bytes that it saves. Graphs
/// of more than 8,192 ops are not planned, and keep their order. Between `select`, which knows
/// layouts and workspaces, and `in_place`, which goes by who reads last. `free_tasks`: what makes
/// the tasks of a graph whose tasks run in any order, such as those of no lane, where only ops of
/// one task change places; absent: the order counts. Returns how many ops were moved.
int order(Graph& graph, const std::function<PlannedBytes(const Graph&)>& planned,
          const std::function<Schedule(const Graph&)>& free_tasks = {}, Remarks* remarks = nullptr);

// ---- in place ----------------------------------------------------------------------------------

/// Lets results overwrite operands, each one of its own, where the operator allows it, the operand
/// is a transient value of the same layout and size, is no output, and has no later reader. Returns
/// how many were merged.
int in_place(Graph& graph, Remarks* remarks = nullptr);

// ---- coarsening --------------------------------------------------------------------------------

/// Merges ops of one lane and phase into tasks of at least `target.task_microseconds`; all of them
/// into one where they take less than `target.phase_microseconds` together. Updates, and what is
/// in no lane, become smaller tasks where there are several lanes: whichever worker has nothing
/// else to do takes one. An op that has to wait for another lane, as the task before it does not,
/// begins a task. On a device a lane's ops are one task as far as their order allows, whatever
/// their phases, and where there is one lane only, those of no lane with them.
Schedule coarsen(const Graph& graph, const TargetProfile& target = default_target());

}  // namespace arenite::graph
