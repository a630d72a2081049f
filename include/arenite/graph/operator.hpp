// An operator's definition: everything the graph and the planner need to know of it, as data.
//
// `graph` knows operators only through this interface; kernels are attached in runtime/kernel.hpp,
// and codelets/<op>/ holds both. Definitions are immutable once registered and shared by every
// graph; their functions must be pure and safe to call from any thread.
#pragma once

#include <arenite/error.hpp>
#include <arenite/expr/expression.hpp>
#include <arenite/graph/graph.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace arenite::graph {

class Builder;
struct WrittenFormula;

/// Of what persists a result is the new version, which the next step finds (see keep_state).
enum class Renews : std::uint8_t {
  nothing,
  buffers,  ///< of buffers, in phase update of all that persists; elsewhere it is just a value
  state,    ///< of all that persists
};

struct OperandSchema {
  std::string name;
  bool optional = false;
  /// Of an optional one: a number of the op's attributes that is 0 where it is left out, and not
  /// where it is given. Empty: it is given or not, whatever the attributes.
  std::string given_with = {};
  /// A result is like the operand, and a new version of it.
  /// The versions of all operands so marked that an op is given are its last results, in the
  /// operands' order.
  Renews renews = Renews::nothing;
  /// Only multiplied by another factor in sums of products: rounded before where a program is built
  /// for it (see runtime::Compute).
  bool factor = false;
};

enum class AttributeType : std::uint8_t { integer, real, text, integers };

struct AttributeSchema {
  std::string name;
  AttributeType type = AttributeType::integer;
  std::optional<AttributeValue> default_value;  ///< none: the attribute must be given
};

/// What an op would produce: one entry a result.
struct ResultType {
  DType type = DType::float32;
  Shape shape;
};

/// Says that a result has no bytes of its own but lies inside an operand's.
struct ViewOf {
  std::size_t operand = 0;
  std::int64_t offset = 0;  ///< bytes from the operand's first byte
};

/// Work of one execution, for coarsening and reports.
struct Cost {
  double flops = 0;
  double bytes = 0;  ///< read and written, counted once each
};

/// What a gradient rule sees: the forward op, the gradients of its results, and a builder that
/// appends backward ops. The rule calls `set` for each operand that `wants` one.
class GradientContext {
 public:
  static constexpr std::size_t no_seed = static_cast<std::size_t>(-1);

  GradientContext(Builder& builder, OpId op, std::vector<ValueId> result_gradients,
                  std::vector<bool> wanted, std::size_t seed = no_seed);

  Builder& builder() noexcept { return *builder_; }
  OpView forward() const;
  ValueId operand(std::size_t i) const;
  ValueId result(std::size_t i) const;
  /// Gradient of result i; ValueId{} when nothing depends on it. That of the seed is 1, in a value
  /// made when it is first asked for.
  ValueId result_gradient(std::size_t i);
  /// Result i is what is being differentiated: a rule may know what its gradient of 1 comes to.
  bool is_seed(std::size_t i) const { return seed_ == i; }
  bool wants(std::size_t operand) const { return wanted_.at(operand); }
  void set(std::size_t operand, ValueId gradient);
  ValueId operand_gradient(std::size_t i) const { return operand_gradients_.at(i); }

 private:
  Builder* builder_;
  OpId op_;
  std::vector<ValueId> result_gradients_, operand_gradients_;
  std::vector<bool> wanted_;
  std::size_t seed_;
};

/// A chain of ops. Op i+1 of it reads result 0 of op i, and nobody else does. Who does it takes the
/// operands of the chain in order, less those (an optional one that was left out keeps its place),
/// and those of an op that takes any number behind the others; its result 0 is the last op's, and
/// all are where the last op makes new versions.
struct ChainOf {
  std::vector<std::string> operators;  ///< at least two
  /// The fused op's attributes; none: this chain stays as it is.
  std::function<std::optional<Attributes>(const std::vector<OpView>& chain)> attributes;
  std::size_t operand = 0;  ///< of each op but the first: what the one before it makes
};

/// The sum of the only results of ops that differ in their operands alone. Who does it has the same
/// attributes, and takes the operands of all of them in order (`variadic` by their number). It may
/// have the attribute `sum_tree`.
struct SumOf {
  std::string of;  ///< operator
};

/// The attribute, an integer, by which an operator is told to add results as `sum` does, to the
/// same bits; 0: in any order.
inline constexpr std::string_view sum_tree = "tree";

/// Ops side by side that share an operand, and differ in the others alone. Who does it has the same
/// attributes, takes the shared operand, then the others of each in order, and makes the results of
/// each.
struct GroupOf {
  std::string of;  ///< operator
  std::size_t shared = 0;
  /// Another operand, which may have axes in front, over which it is summed for each: operand 0 of
  /// an op of the operator `sums`, which is not needed then.
  std::size_t summed = 1;
  std::string sums = {};  ///< none: nothing is summed
};

/// Which of its axes an operand is split along.
enum class Split : std::uint8_t { none, rows, columns };  ///< the first axis; the second

/// Places [begin, begin + count) of an axis, which an op is asked to work on alone: samples of a
/// batch, features, rows of a parameter.
struct Share {
  /// By operand: it holds these places alone of that axis. All are whole for an op that is to make
  /// these rows of its results, as a gather is.
  std::vector<Split> split;
  std::int64_t begin = 0, count = 0;

  bool is(Split one, std::size_t operand) const noexcept {
    return (operand < split.size() ? split[operand] : Split::none) == one;
  }
  bool has_rows(std::size_t operand) const noexcept { return is(Split::rows, operand); }
  bool is_whole(std::size_t operand) const noexcept { return is(Split::none, operand); }
  /// So many operands are split.
  std::ptrdiff_t count_split() const {
    return std::ssize(split) - std::ranges::count(split, Split::none);
  }
};

/// What an op makes of one share.
struct OfShare {
  enum class Result : std::uint8_t {
    rows,     ///< the share's rows of the whole result
    columns,  ///< its columns
    sum,      ///< a part of it: the parts of all shares add up to the whole
  };
  /// What is left to do with the sum of the parts: an op on that and on operands of the whole op,
  /// which the op on the share does without.
  struct Finish {
    std::string name;                   ///< operator
    std::vector<std::size_t> operands;  ///< behind the sum
  };
  std::vector<Result> results;
  Attributes attributes;            ///< of the op on the share
  std::string name = {};            ///< its operator; none: the same
  std::vector<Finish> finish = {};  ///< of a sum, in this order
};

/// What an op's only result is as well: a value that is there, or what another op makes.
struct Simpler {
  ValueId value;                  ///< none: it is made by an op of
  std::string name;               ///< this operator,
  std::vector<ValueId> operands;  ///< of these values, which the op or those that make its operands
                                  ///< read as well,
  Attributes attributes;          ///< and of these attributes: all that the operator has
};

/// What an op computes of all its operands, as data: an element of a result comes of the operands'
/// elements at its place, which are repeated along axes where their size is 1, and along axes in
/// front that they lack.
struct ElementFormula {
  expr::Expression expression;
  /// Those of the shape to which the operands are repeated along which groups of elements lie, if
  /// the expression reduces groups. What is one for a group is of size 1 along them.
  std::vector<std::int64_t> axes = {};
  bool keeps_axes = true;  ///< else that lacks them
  bool is_exact = true;    ///< else the operator has kernels that make other bits
};

/// Any formula, of ops that are parts of one another. Who does it takes its operands in order.
struct FormulaOf {
  bool reduces = false;  ///< formulas that reduce groups, else those that do not
  std::function<Attributes(const ElementFormula&)> attributes;
};

/// An op that is another one in each mode, as the pass `apply_mode` asks what it is in one. What
/// takes its place is appended to a graph in which its operands are there already.
struct ModeContext {
  Builder& builder;  ///< appends with the op's phase and origin
  const Op& op;      ///< as it was; its operands are not this graph's
  Mode mode = Mode::evaluate;
  std::vector<ValueId> operands;
  std::int64_t number = 0;   ///< how many ops of its operator stand before it
  std::int64_t samples = 0;  ///< rows of the batch; 0: there is none
  int shards = 1;            ///< that it is to be cut in
  /// An int64 [1]: how many samples training has drawn before this batch. A program that asks for
  /// it is given it in each step.
  std::function<ValueId()> position;
  /// By result: of a new version of what persists, whether it is wanted; else the old one may stand
  /// for it.
  std::vector<bool> keeps;
  /// For the op to set: what it makes of a sample depends on all of the batch, by its own meaning.
  bool needs_whole_batch = false;
};

/// How an op runs the regions that it holds (see regions.hpp).
enum class Control : std::uint8_t { none, branch, loop };

class OperatorDefinition {
 public:
  std::string name;
  std::vector<OperandSchema> operands;
  std::size_t variadic = 0;  ///< so many last operand schemas repeat together, at least once
  std::vector<std::string> results;
  std::vector<AttributeSchema> attributes;
  std::string written = {};  ///< of no table: the `formula` that it is, as scripts have it

  /// Blocks of ops that each op holds, by name; the first one's is not written in scripts.
  std::vector<std::string> regions;
  Control control = Control::none;
  /// Types of a region's parameters; absent: it has none. Called before the regions are there.
  /// Throws Error.
  std::function<std::vector<ResultType>(const OpView&, std::size_t region)> parameters;
  std::vector<std::string> parameter_names;  ///< of regions; the last one goes for all that follow

  /// Shape rule. Called with attributes completed by defaults; op.results is empty. Throws Error.
  std::function<std::vector<ResultType>(const OpView&)> infer;

  /// For each result that is a view, where it lies; absent function: no result is one. An op all of
  /// whose results are views has no kernel.
  std::function<std::vector<std::optional<ViewOf>>(const OpView&)> views;

  /// Builds the gradient graph-to-graph. Absent: the op cannot be differentiated.
  std::function<void(GradientContext&)> gradient;

  /// Pairs (result, operand): the result may overwrite the operand's bytes when no one else needs
  /// them. So may new versions, which need not be listed.
  std::vector<std::pair<std::size_t, std::size_t>> in_place;

  /// Of an operator that has one: `map`'s kernels are its kernels too. Called when results are
  /// there, or by the operator's own shape rule.
  std::function<ElementFormula(const OpView&)> formula;

  std::function<Cost(const OpView&)> cost;  ///< absent: the bytes of operands and results

  /// What the op's only result is with less work, or in a form that others see through: the same
  /// bits, and the same gradients, but that the terms of a product may be added in another order.
  /// It may look at what makes the operands, whose bytes are as they were made. `tidy` asks until
  /// there is none. Absent, or none returned: there is nothing simpler, or the op may report a
  /// status that would be missed.
  std::function<std::optional<Simpler>(const OpView&)> simplify;

  /// Of an operator that is another in each mode: appends what the op is, and returns its results.
  /// What stands in its place has no mode any more. Nothing runs, or differentiates, an op of this
  /// operator itself.
  std::function<std::vector<ValueId>(ModeContext&)> in_mode;

  /// The ops in place of which passes put one of this operator.
  std::variant<std::monostate, ChainOf, SumOf, GroupOf, FormulaOf> does;

  /// What the op is on a share, with the same bits as in the whole, but for sums. Asked of samples
  /// of a batch, of rows of a parameter's gradient and its update, and of features of a product.
  /// Absent, or none returned: it cannot work share by share, and where samples of a batch meet in
  /// it, it sees all of them at once.
  std::function<std::optional<OfShare>(const OpView&, const Share&)> of_share;

  /// Of an optimizer: what it asks for behind its states, one float32 each, by the number of the
  /// step, an int64, from 1 on. Its attributes are all there.
  std::function<expr::Expression(const Attributes&)> each_step;

  /// What is wrong where its kernels report this code to the status word. `operands` are the bytes
  /// of inputs and constants in the host's memory, as the kernels met them, and null for all
  /// others. Absent: they report nothing.
  std::function<ErrorText(const OpView&, std::uint32_t code, std::span<const void* const> operands)>
      fault;

  /// Whether an op may have so many operands: at least the required ones, beyond the known ones
  /// only whole groups of those that repeat, but for optional ones at the end of the last.
  bool takes(std::size_t count) const noexcept;
  /// An optimizer's operands are a parameter, then those named `gradient` and `learning_rate`, then
  /// states like the parameter, then what `each_step` gives; it makes new versions of the parameter
  /// and of the states.
  bool is_optimizer() const noexcept;
  /// Whether ops of these attributes (those that are not there have their defaults) are given an
  /// operand: what its `given_with` says, else that it is not optional.
  bool gives(const OperandSchema& operand, const Attributes& attributes) const;
  /// Those of an op, and defaults for what they lack.
  Attributes with_defaults(Attributes given) const;
  /// What `takes` asks for: "2 (x, gradient, …)".
  std::string expected_operands() const;
  const OperandSchema& operand_schema(std::size_t operand) const noexcept;
};

/// The types of an op's results, by its shape rule; op.results is empty. Throws Error where an
/// operand is there that should be left out, or the other way round.
std::vector<ResultType> infer(const OpView& op);

/// Operators by name. The process-wide table is `operators()`; tests make their own.
class OperatorTable {
 public:
  /// Throws Error on a name already taken or an incomplete definition.
  void add(OperatorDefinition definition);
  std::shared_ptr<const OperatorDefinition> find(std::string_view name) const noexcept;
  /// Throws Error that lists near names.
  std::shared_ptr<const OperatorDefinition> at(std::string_view name) const;
  std::vector<std::string> names() const;

  /// Makes the operator that a formula is (see formula.hpp). Absent: no formula is one.
  std::function<OperatorDefinition(const WrittenFormula&)> define_by;

  using ByName = std::map<std::string, std::shared_ptr<const OperatorDefinition>, std::less<>>;
  const ByName& all() const noexcept { return definitions_; }

 private:
  ByName definitions_;
};

}  // namespace arenite::graph
