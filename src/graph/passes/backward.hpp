// The gradients of a list of ops, of a graph's body or of a block.
#pragma once

#include <arenite/graph/builder.hpp>
#include <arenite/graph/passes.hpp>

#include <functional>
#include <map>
#include <set>
#include <vector>

namespace arenite::graph {

/// By value: on a path from one of `wrt`, in blocks too.
std::vector<bool> values_after(const Graph& graph, const std::vector<ValueId>& wrt);

/// Appends the gradients of ops to the region that the builder is in, the last op's first.
class Backward {
 public:
  /// `ops` are those of `forward`; gradients go to values in `wanted` (see values_after) alone.
  Backward(Builder& builder, RegionId forward, RegionId into, const std::vector<bool>& wanted,
           const BatchCut& cut = {});

  /// A scalar whose gradient is 1. Before `run`.
  void add_loss(ValueId loss);
  /// A value's gradient, or a part of it. Before `run`.
  void add_part(ValueId value, ValueId gradient);

  /// `complete(value)` is called as soon as all that a value gets has been appended.
  void run(const std::function<void(ValueId)>& complete = {});

  /// The sum of what was contributed so far, lane 0 first (ops are visited last to first). None
  /// where nothing was.
  ValueId total(ValueId value);

 private:
  const Graph& graph() const { return builder_.graph(); }
  bool wanted(ValueId id) const { return id && id.index < wanted_.size() && wanted_[id.index]; }
  bool is_loss(ValueId id) const;
  [[noreturn]] void refuse_read_loss(OpId id) const;

  void mark_relevant();
  bool leads(OpId id, const std::set<ValueId>& to) const;
  OpContext context_of(OpId forward) const;
  std::vector<ValueId> sources(OpId id) const;
  std::vector<ValueId> captures(OpId id) const;
  void differentiate(OpId id);
  void finish_complete(OpId id, const std::function<void(ValueId)>& complete);

  // Of both kinds of blocks: see restore.cpp.

  /// Brings a value of the forward block to the place in the backward block where it is needed.
  using Bring = std::function<ValueId(ValueId value, std::size_t& position)>;
  /// Replaces what ops of a backward block read of the forward block.
  void restore(RegionId backward, RegionId forward, const Bring& bring);
  void make_whole(ValueId partial);
  std::size_t position_of(RegionId region, OpId op) const;
  bool stands_in(RegionId region, OpId op) const;
  ValueId add_into(RegionId region, std::size_t position, std::string_view op,
                   std::vector<ValueId> operands, const Attributes& attributes);
  ValueId add_full(RegionId region, ValueId like, double number);

  // `if`: see backward_branch.cpp.
  void differentiate_branch(OpId id);
  ValueId save(OpId branch, std::size_t side, ValueId value);
  ValueId condition_of(ValueId partial) const;
  void add_loss_of(Backward& block, OpId branch, std::size_t side, std::size_t result);

  // `loop`: see backward_loop.cpp.
  struct Carried {
    ValueId parameter, result;
  };
  void differentiate_loop(OpId id);
  std::vector<std::size_t> carried_gradients(const Op& loop, const std::vector<ValueId>& carried,
                                             const std::vector<ValueId>& yielded) const;
  ValueId count_trips(OpId loop);
  ValueId stack(OpId loop, ValueId value);
  Carried add_carried(OpId loop, const std::string& name, ValueId first);

  Builder& builder_;
  const RegionId forward_, into_;
  const std::vector<OpId> ops_;  // before we appended any
  const std::vector<bool>& wanted_;
  const BatchCut cut_;
  std::vector<ValueId> losses_;
  std::map<ValueId, std::vector<ValueId>> parts_;
  std::vector<bool> relevant_;  // by op: on a path from a wanted value to a loss or a given part
  std::map<ValueId, int> pending_;  // contributions still to come
};

}  // namespace arenite::graph
