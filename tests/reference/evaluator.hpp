// What a graph means, in double: for tests only.
//
//   reference::Evaluator step(graph);
//   step["x"].data = …;                 // declared values; those not set are zeros
//   step.run();                         // every op, in program order
//   step[loss].data.front();
//
// Each operator is a rule, a function written straight from its formula that shares no code with
// codelets/. Values are dense and row-major: layouts, halos, kernels, plans and in-place results
// play no part, so whatever the framework makes of those can be compared with this. To add an
// operator, add its rule to one of the files of rules.hpp.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/operator.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::reference {

/// A value without a halo. Integers (pixels, labels, codes) are doubles too: below 2^53 these are
/// exact.
struct Tensor {
  Shape shape;
  std::vector<double> data;

  explicit Tensor(const Shape& s = {})
      : shape(s), data(static_cast<std::size_t>(s.elements()), 0.0) {}

  std::size_t size() const noexcept { return data.size(); }
  double& operator[](std::int64_t i) { return data[static_cast<std::size_t>(i)]; }
  double operator[](std::int64_t i) const { return data[static_cast<std::size_t>(i)]; }
};

/// The sides of its kinks that an op is on.
struct Decisions {
  std::vector<std::uint8_t> branches;  ///< one for each ReLU's sign, each pooling window's winner
  /// How far the nearest kink is: no branch changes while the op's inputs change by less than half
  /// of it.
  double margin = std::numeric_limits<double>::infinity();

  void clear() {
    branches.clear();
    margin = std::numeric_limits<double>::infinity();
  }
};

/// One op while its rule computes it.
class Call {
 public:
  Call(const graph::Graph& graph, const graph::Op& op, std::vector<Tensor>& values,
       Decisions& decisions)
      : graph_(graph), op_(op), values_(values), decisions_(decisions), used_(op.operands.size()) {}

  const graph::Attributes& attributes() const noexcept { return op_.attributes; }
  std::size_t operands() const noexcept { return op_.operands.size(); }
  std::size_t results() const noexcept { return op_.results.size(); }
  bool has(std::size_t i) const noexcept { return i < op_.operands.size() && op_.operands[i]; }

  /// Of an operator that has one.
  graph::ElementFormula formula() const { return op_.definition->formula({graph_, op_}); }

  DType type(std::size_t i) const { return graph_[op_.operands.at(i)].type; }

  const Tensor& in(std::size_t i) {
    used_.at(i) = true;
    return values_.at(op_.operands.at(i).index);
  }
  /// Zeros, in the shape that the graph gives the result.
  Tensor& out(std::size_t i) { return values_.at(op_.results.at(i).index); }

  /// Throws Error when the rule left out an operand: one that the operator has got since.
  void check_used() const;

  void decide(std::int64_t branch, double margin) {
    decisions_.branches.push_back(static_cast<std::uint8_t>(branch));
    decisions_.margin = std::min(decisions_.margin, margin);
  }

 private:
  const graph::Graph& graph_;
  const graph::Op& op_;
  std::vector<Tensor>& values_;
  Decisions& decisions_;
  std::vector<bool> used_;
};

using Rule = std::function<void(Call&)>;
using Rules = std::map<std::string, Rule, std::less<>>;

/// A rule for each operator of codelets/ (rules.hpp), and `formula` for those that scripts write.
const Rules& rules();

class Evaluator {
 public:
  /// The graph is borrowed. Throws Error on an operator without a rule. Blocks run as
  /// graph/regions.hpp says; a result that the taken side leaves out is zeros.
  explicit Evaluator(const graph::Graph& graph, const Rules& rules = reference::rules());

  Tensor& operator[](graph::ValueId id) { return values_.at(id.index); }
  Tensor& operator[](std::string_view declared);  ///< throws Error on an unknown name

  void run();
  /// Only the ops that depend on a declared value, after a `run`.
  void rerun(graph::ValueId changed);
  /// Declared values become what ops have made new versions of: what the next step finds.
  void keep();

  /// Of all ops, as the last runs left them.
  Decisions decisions() const;

 private:
  void run(graph::OpId id);
  void run_branch(const graph::Op& op);
  void run_loop(const graph::Op& op);
  void forget_decisions(graph::OpId id);

  const graph::Graph& graph_;
  std::vector<const Rule*> rules_;  // by op
  std::vector<Tensor> values_;
  std::vector<Decisions> decisions_;  // by op
  int in_block_ = 0;
  std::map<graph::ValueId, std::vector<graph::OpId>> dependents_;
};

}  // namespace arenite::reference
