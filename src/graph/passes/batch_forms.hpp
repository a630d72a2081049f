// What becomes of each value of a graph when a batch is cut in shares: rows, terms of a sum, or the
// whole. Operators alone decide (`OperatorDefinition::of_share`).
#pragma once

#include <arenite/graph/operator.hpp>
#include <arenite/graph/target.hpp>

#include <optional>
#include <string>
#include <vector>

namespace arenite::graph {

/// What somebody says has the batch's rows: all values of a name, or one input that nobody named.
struct BatchAxis {
  std::string name;            ///< "" for an input's own
  std::vector<ValueId> seeds;  ///< in the order of the graph; at least one
  std::int64_t rows = 0;
};

/// The batches that a graph could be cut along, in the order of their first value: those that have
/// names, and inputs without one of two rows or more. A value that is in none may still join one,
/// where an operator demands it.
std::vector<BatchAxis> batch_axes(const Graph& graph);

class BatchForms {
 public:
  using Result = OfShare::Result;

  BatchForms(const Graph& graph, BatchAxis axis, const TargetProfile& target);

  std::int64_t rows() const noexcept { return axis_.rows; }
  /// None: it has nothing to do with the batch, or sees all of it, and is whole.
  std::optional<Result> of(ValueId value) const { return of_[value.index]; }
  /// Has the batch's rows, but is there as a whole, as an input is: a share takes a part of it.
  bool is_there_whole(ValueId value) const {
    return of(value) == Result::rows && (!graph_[value].producer || !by_share(producer(value)));
  }
  /// The op works share by share.
  bool by_share(OpId op) const { return by_share_[op.index]; }
  /// What it is on one; only of ops that do.
  OfShare share_of(OpId op, std::int64_t begin, std::int64_t rows) const {
    return *ask(op, split_operands(op), begin, rows);
  }

  /// Calls f(value) for what an op of the body reads, itself or in its blocks, of values of the
  /// body; for some more than once.
  template <class F>
  void for_each_read(OpId op, const F& f) const {
    for_each_named(op, [&](ValueId value) {
      if (inner_.empty() || !inner_[value.index]) f(value);
    });
  }

  /// Ops that see all samples at once, and why.
  struct Refusal {
    OpId op;
    std::string why;
  };
  const std::vector<Refusal>& refusals() const noexcept { return refusals_; }
  /// Why nothing is gained by cutting this batch, the first reason of all; empty: something is.
  const std::string& objection() const noexcept { return objection_; }

 private:
  OpId producer(ValueId value) const { return graph_[value].producer; }
  bool by_rows(ValueId value) const { return value && of(value) == Result::rows; }
  std::vector<Split> split_operands(OpId op) const;
  std::optional<OfShare> ask(OpId op, std::vector<Split> split, std::int64_t begin,
                             std::int64_t rows) const;
  template <class F>
  void for_each_named(OpId id, const F& f) const {
    const auto visit = [&](const std::vector<ValueId>& list) {
      for (const ValueId value : list) {
        if (value) f(value);
      }
    };
    visit(graph_[id].operands);
    for (const RegionId region : graph_[id].regions) {
      for (const OpId inner : graph_[region].ops) for_each_named(inner, f);
      visit(graph_[region].results);
    }
  }
  bool reads_rows(OpId op) const;
  void settle();
  bool look_at(OpId op);
  bool join(OpId op);
  bool join_operands(OpId op);
  /// And no other batch's.
  bool is_as_long(ValueId value) const;
  bool may_join(ValueId value) const;
  bool makes_rows(OpId op) const;
  void refuse(OpId op);
  bool keep_whole();
  std::string weigh(const TargetProfile& target) const;

  const Graph& graph_;
  const BatchAxis axis_;
  std::vector<bool> inner_;                // by value: of a block; empty: there are no blocks
  std::vector<bool> seed_;                 // by value: has the rows, whatever it is made of
  std::vector<bool> kept_;                 // by op: makes rows, but all of them at once
  std::vector<std::optional<Result>> of_;  // by value
  std::vector<bool> by_share_;             // by op
  std::vector<Refusal> refusals_;
  std::string objection_;
};

}  // namespace arenite::graph
