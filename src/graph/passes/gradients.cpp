#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include <algorithm>

#include "src/graph/passes/sharing.hpp"

namespace arenite::graph {
namespace {

class Differentiator {
 public:
  Differentiator(Builder& builder, const std::vector<ValueId>& losses,
                 const std::vector<ValueId>& wrt, const GradientDone& done)
      : builder_(builder),
        losses_(losses),
        wrt_(wrt),
        done_(done),
        forward_(builder.graph()[Graph::body].ops),
        contributions_(builder.graph().value_count()),
        gradients_(wrt.size()) {
    mark_wanted();
    mark_relevant();
  }

  std::vector<ValueId> run() {
    const OpContext saved = builder_.context;
    for (auto it = forward_.rbegin(); it != forward_.rend(); ++it) {
      if (!relevant_[it->index]) continue;
      differentiate(*it);
      finish_complete(*it);
    }
    builder_.context = saved;
    verify(builder_.graph());
    return gradients_;
  }

 private:
  const Graph& graph() const { return builder_.graph(); }

  /// Values on a path from a `wrt` value.
  void mark_wanted() {
    wanted_.assign(graph().value_count(), false);
    for (ValueId id : wrt_) wanted_[id.index] = true;
    for (OpId id : forward_) {
      const Op& op = graph()[id];
      bool reads = false;  // in a block perhaps
      for_each_named(graph(), id, [&](ValueId v) { reads = reads || wanted_[v.index]; });
      if (!reads) continue;
      for (ValueId result : op.results) wanted_[result.index] = true;
    }
  }

  /// Ops on a path from a `wrt` value to a loss, and how many of them still have to be visited
  /// before each value's gradient is complete.
  void mark_relevant() {
    relevant_.assign(graph().op_count(), false);
    pending_.assign(graph().value_count(), 0);
    std::vector<bool> reaches(graph().value_count(), false);
    for (ValueId loss : losses_) {
      if (graph()[loss].shape.elements() != 1) {
        fail({.found = "a loss of shape " + to_string(graph()[loss].shape),
              .expected = "a single element",
              .where = "value '" + graph()[loss].name + "'"});
      }
      reaches[loss.index] = true;
    }
    for (auto it = forward_.rbegin(); it != forward_.rend(); ++it) {
      const Op& op = graph()[*it];
      const bool leads = std::any_of(op.results.begin(), op.results.end(), [&](ValueId v) {
        return reaches[v.index] && wanted_[v.index];
      });
      if (!leads) continue;
      relevant_[it->index] = true;
      for (ValueId operand : op.operands) {
        if (!operand || !wanted_[operand.index]) continue;
        reaches[operand.index] = true;
        ++pending_[operand.index];
      }
    }
  }

  void differentiate(OpId id) {
    // Copies: appending ops may move the graph's arrays.
    const Op op = graph()[id];
    builder_.context = {.phase = Phase::backward, .lane = op.lane, .where = op.where};
    std::vector<ValueId> result_gradients;
    std::size_t seed = GradientContext::no_seed;
    bool any = false;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const bool is_loss =
          std::find(losses_.begin(), losses_.end(), op.results[i]) != losses_.end();
      result_gradients.push_back(total(op.results[i]));
      if (is_loss && result_gradients.back()) {
        fail({.found = "a loss that other losses depend on",
              .expected = "losses that nothing reads",
              .where = describe(graph(), id)});
      }
      if (is_loss) seed = i;
      any = any || is_loss || result_gradients.back();
    }
    if (!any) return;
    if (!op.definition->gradient) {
      fail({.found = "an operator without a gradient on the way from a parameter to the loss",
            .expected = "an operator whose definition has a `gradient` function",
            .where = describe(graph(), id)});
    }
    std::vector<bool> wanted;
    for (ValueId operand : op.operands) wanted.push_back(operand && wanted_[operand.index]);
    GradientContext context(builder_, id, std::move(result_gradients), wanted, seed);
    op.definition->gradient(context);
    // Each operand slot contributes for itself: x + x counts twice.
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (wanted[i] && context.operand_gradient(i)) {
        contributions_[op.operands[i].index].push_back(context.operand_gradient(i));
      }
    }
  }

  /// Sums what was contributed so far, lane 0 first (ops are visited last to first).
  ValueId total(ValueId id) {
    std::vector<ValueId>& parts = contributions_[id.index];
    if (parts.size() > 1) {
      std::reverse(parts.begin(), parts.end());
      int lane = graph()[graph()[parts.front()].producer].lane;
      for (ValueId part : parts) {
        if (graph()[graph()[part].producer].lane != lane) lane = Op::shared_lane;
      }
      const OpContext saved = builder_.context;
      builder_.context = {.phase = Phase::backward, .lane = lane, .where = graph()[id].name};
      parts = {builder_.add1("sum", parts)};
      builder_.context = saved;
    }
    return parts.empty() ? ValueId{} : parts.front();
  }

  void finish_complete(OpId id) {
    // A copy: `total` appends ops.
    const std::vector<ValueId> operands = graph()[id].operands;
    for (ValueId operand : operands) {
      if (!operand || !wanted_[operand.index] || --pending_[operand.index] > 0) continue;
      for (std::size_t i = 0; i < wrt_.size(); ++i) {
        if (wrt_[i] != operand) continue;
        gradients_[i] = total(operand);
        if (gradients_[i] && done_) done_(i, gradients_[i]);
      }
    }
  }

  Builder& builder_;
  const std::vector<ValueId>& losses_;
  const std::vector<ValueId>& wrt_;
  const GradientDone& done_;
  const std::vector<OpId> forward_;  // the ops before we appended any
  std::vector<std::vector<ValueId>> contributions_;
  std::vector<ValueId> gradients_;
  std::vector<bool> wanted_, relevant_;
  std::vector<int> pending_;
};

}  // namespace

std::vector<ValueId> add_gradients(Builder& builder, const std::vector<ValueId>& losses,
                                   const std::vector<ValueId>& wrt, const GradientDone& done) {
  return Differentiator(builder, losses, wrt, done).run();
}

}  // namespace arenite::graph
