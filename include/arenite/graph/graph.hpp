// The intermediate representation: values, storages, ops, regions.
//
// A Value is a typed, shaped result; a Storage is the bytes behind one or more values. A view is a
// value whose storage is another's. Ops stand in program order inside a region. They only read
// their operands: what changes a parameter, a state or a buffer makes a new version of it, which
// one pass lets lie in the old one's bytes (see keep_state). A Graph owns everything in it, is a
// plain copyable value, and is not safe for concurrent modification. Passes take a Graph and give
// a Graph.
#pragma once

#include <arenite/graph/attributes.hpp>
#include <arenite/graph/first_value.hpp>
#include <arenite/types.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::graph {

class OperatorDefinition;
class OperatorTable;

using ValueId = Id<struct ValueTag>;
using StorageId = Id<struct StorageTag>;
using OpId = Id<struct OpTag>;
using RegionId = Id<struct RegionTag>;

/// What a storage is for; decides where it lives and for how long.
enum class StorageClass : std::uint8_t {
  parameter,        ///< trained; persists; new versions are made by update ops
  optimizer_state,  ///< persists with the parameters
  buffer,           ///< survives steps
  constant,         ///< read-only bytes bound by name when a program is built; not ours to place
  input,            ///< refilled each step; one copy for each task set
  output,           ///< pinned, alive to the end of the step
  activation,       ///< written and read within a step ("saved" when it crosses into backward)
  gradient,         ///< of an activation or a parameter
  workspace,        ///< scratch of a single op
};

std::string_view to_string(StorageClass cls) noexcept;
StorageClass parse_storage_class(std::string_view text);

/// True for what outlives a step: parameters, optimizer state, buffers.
bool is_persistent(StorageClass cls) noexcept;
/// True for what a planner packs: activations, gradients, workspaces, outputs.
bool is_transient(StorageClass cls) noexcept;

/// How a value lies in memory, in its space. Rows of C are contiguous; a halo of zeros may surround
/// each H×W plane of an NHWC value, so that a convolution needs no edge cases. Whoever writes the
/// value writes its halo too.
struct Layout {
  int halo = 0;  ///< rows and columns on each side; only values of rank 4 may have one

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Bytes that a value of this type, shape and layout spans.
std::int64_t byte_size(DType type, const Shape& shape, const Layout& layout = {});

struct Storage {
  std::string name;
  StorageClass cls = StorageClass::activation;
  Space space;
  std::int64_t bytes = 0;
  /// Set by Graph::merge: this storage's bytes are those of another. Resolve with Graph::root().
  StorageId merged_into;
};

struct Value {
  std::string name;
  DType type = DType::float32;
  Shape shape;
  Layout layout;
  StorageId storage;
  std::int64_t offset = 0;  ///< bytes from the storage's start (a slice is a view at an offset)
  OpId producer;            ///< none for a declared value (parameter, input, …)
  RegionId parameter_of;    ///< the region that it is a parameter of, if it is one: not declared
  /// Of a declared value: by axis, the name of a size that only a run decides, whose upper bound
  /// the shape holds, or "". Empty when all are known. See run_time_sizes.hpp.
  std::vector<std::string> size_names;
  /// Of a declared value, or of what an op makes of none: the name of the batch that its first axis
  /// runs over, "" for none. Operators say which values behind it have the axis: see split_batch.
  std::string batch;
  FirstValue first;     ///< of a declared value that persists
  bool frozen = false;  ///< of a declared parameter: training leaves it as it is

  /// A parameter, an input, a constant, …
  bool is_declared() const noexcept { return !producer && !parameter_of; }
};

struct Op {
  std::shared_ptr<const OperatorDefinition> definition;
  Attributes attributes;
  std::vector<ValueId> operands;  ///< an absent optional operand is ValueId{}
  std::vector<ValueId> results;
  std::vector<RegionId> regions;  ///< bodies of `if` and `loop`
  Phase phase = Phase::forward;
  int lane = shared_lane;  ///< the part of the batch it works on
  ValueId workspace;       ///< scratch bytes that `select` added for the chosen kernel
  std::string kernel;      ///< chosen by `select`; empty before
  std::string where;       ///< script line or layer name, for messages

  static constexpr int shared_lane = -1;  ///< belongs to no lane (sums over lanes, updates)

  std::string_view name() const noexcept;
};

/// A block of ops with parameters and results, held by region ops (see regions.hpp). Region 0 is
/// the graph's body.
struct Region {
  std::vector<ValueId> parameters;
  std::vector<OpId> ops;         ///< in program order
  std::vector<ValueId> results;  ///< what it yields; ValueId{} for one left out
};

/// Parameters that are updated otherwise than the rest.
struct ParameterGroup {
  std::string names;             ///< patterns as in a shell, "*.bias, norm?.*"; empty: of any name
  std::optional<int> most_rank;  ///< of no more axes: 1 is of biases and what norms scale by
  double rate = 1;               ///< times the learning rate
  Attributes attributes;         ///< of their updates, in place of the others'

  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// A mean of each parameter over the steps `begin`, `begin` + `every`, …, kept beside it. Before
/// them it is the parameter.
struct Averaging {
  /// Of the mean so far this share stays, and the rest is the parameter; 0: all steps count alike.
  double decay = 0;
  std::int64_t begin = 1, every = 1;  ///< at least 1

  friend bool operator==(const Averaging&, const Averaging&) = default;
};

/// How training changes parameters.
struct UpdateRule {
  std::shared_ptr<const OperatorDefinition> optimizer;
  Attributes attributes = {};  ///< of each update
  double learning_rate = 0;    ///< at first
  /// What multiplies the rate: a formula of the step's number `$1`, a float64, from 1 on; empty: 1.
  std::string schedule = {};
  double clip_value = 0;  ///< no element of a gradient is farther from 0; 0: any may be
  double clip_norm = 0;   ///< all gradients together are made this long where they are longer
  std::vector<ParameterGroup> groups = {};  ///< the first that a parameter is in counts
  std::optional<Averaging> averaging = {};
  /// A loss that is not finite is a fault: no parameter and no state changes.
  bool check_loss = true;
};

/// What training would change, as `train` says in scripts: see add_training in passes.hpp.
struct Training : UpdateRule {
  ValueId loss;  ///< one float32
  std::vector<ValueId> parameters;
  int accumulate = 1;  ///< batches that one update may take the mean gradient of
};

/// What a program is for, as far as ops differ by it.
enum class Mode : std::uint8_t { train, evaluate };

/// A way to run a graph besides its own outputs: see entries.hpp.
struct Entry {
  std::string name;
  std::vector<ValueId> outputs;
  std::vector<ValueId> keeps = {};  ///< new versions of what persists
  Mode mode = Mode::evaluate;
  bool averaged = false;  ///< of the means that training keeps, in place of the parameters
};

class Graph {
 public:
  Graph();

  const Value& operator[](ValueId id) const { return values_.at(id.index); }
  const Op& operator[](OpId id) const { return ops_.at(id.index); }
  const Region& operator[](RegionId id) const { return regions_.at(id.index); }
  Value& operator[](ValueId id) { return values_.at(id.index); }
  Op& operator[](OpId id) { return ops_.at(id.index); }
  Region& operator[](RegionId id) { return regions_.at(id.index); }

  static constexpr RegionId body{0};

  std::size_t value_count() const noexcept { return values_.size(); }
  std::size_t storage_count() const noexcept { return storages_.size(); }
  std::size_t op_count() const noexcept { return ops_.size(); }
  std::size_t region_count() const noexcept { return regions_.size(); }

  /// The storage itself, unmerged; `root` follows merges to the bytes' owner.
  const Storage& storage(StorageId id) const { return storages_.at(id.index); }
  Storage& storage(StorageId id) { return storages_.at(id.index); }
  StorageId root(StorageId id) const;
  StorageId root(ValueId id) const { return root((*this)[id].storage); }
  const Storage& root_storage(ValueId id) const { return storage(root(id)); }

  StorageId add_storage(Storage storage);
  ValueId add_value(Value value);
  OpId add_op(Op op, RegionId region = body);
  RegionId add_region();

  /// Lets `from` live in the bytes of `into` (in-place results). Throws Error when `into` is
  /// smaller or in another space. Shares nothing new, but shortens the path to the root, when both
  /// are one already.
  void merge(StorageId from, StorageId into);

  /// Declared values with this storage class, in declaration order.
  std::vector<ValueId> declared(StorageClass cls) const;
  /// Declared parameters that are not frozen: what training changes unless it says otherwise.
  std::vector<ValueId> trainable() const;
  /// A declared value by name, which is its own within its class; ValueId{} when there is none.
  ValueId find(StorageClass cls, std::string_view name) const noexcept;
  /// The first one of that name in any class.
  ValueId find(std::string_view name) const noexcept;

  /// The values a caller reads after a step, in order.
  std::vector<ValueId> outputs;

  std::optional<Training> training;
  /// Of front ends' graphs: passes see one entry at a time, and forget it once its mode is there.
  std::vector<Entry> entries;

 private:
  std::vector<Value> values_;
  std::vector<Storage> storages_;
  std::vector<Op> ops_;
  std::vector<Region> regions_;
};

/// One op together with its graph: what definitions and kernels look at.
class OpView {
 public:
  OpView(const Graph& graph, const Op& op) : graph_(&graph), op_(&op) {}

  const Graph& graph() const noexcept { return *graph_; }
  const Op& op() const noexcept { return *op_; }
  std::size_t operand_count() const noexcept { return op_->operands.size(); }
  bool has_operand(std::size_t i) const noexcept {
    return i < op_->operands.size() && op_->operands[i];
  }
  const Value& operand(std::size_t i) const { return (*graph_)[op_->operands.at(i)]; }
  const Value& result(std::size_t i) const { return (*graph_)[op_->results.at(i)]; }
  const Attributes& attributes() const noexcept { return op_->attributes; }
  std::int64_t integer(std::string_view name) const { return op_->attributes.integer(name); }
  double real(std::string_view name) const { return op_->attributes.real(name); }

 private:
  const Graph* graph_;
  const Op* op_;
};

/// "conv2d 'conv1'" or "conv2d #7": how messages name an op.
std::string describe(const Graph& graph, OpId id);

}  // namespace arenite::graph
