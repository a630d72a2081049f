#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include "src/graph/passes/rebuild.hpp"

#include <algorithm>
#include <utility>

namespace arenite::graph {
namespace {

using Result = OfShare::Result;

/// What a value is once the batch is split: whole, or by share.
using Form = std::optional<Result>;

/// Whether all ops on the samples of these inputs can work share by share, and what they make.
class Forms {
 public:
  Forms(const Graph& graph, std::int64_t batch)
      : graph_(graph), batch_(batch), of_(graph.value_count()) {
    for (ValueId id : graph.declared(StorageClass::input)) {
      const Shape& shape = graph[id].shape;
      if (shape.rank() > 0 && shape[0] == batch) of_[id.index] = Result::rows;
    }
    for (OpId id : graph[Graph::body].ops) {
      const std::vector<bool> split = split_operands(id);
      if (std::none_of(split.begin(), split.end(), [](bool one) { return one; })) continue;
      const auto share = of_share(id, split, 1);
      if (!share) {
        refusal = describe(graph, id) + " cannot work on a share of " + std::to_string(batch) +
                  " samples";
        return;
      }
      for (std::size_t i = 0; i < share->results.size(); ++i)
        of_[graph[id].results[i].index] = share->results[i];
      works_ = true;
    }
    if (!works_) refusal = "no op works on " + std::to_string(batch) + " samples";
  }

  std::string refusal;  ///< empty: all can

  Form of(ValueId id) const { return of_[id.index]; }
  bool by_rows(ValueId id) const { return of(id) == Result::rows; }
  std::int64_t batch() const noexcept { return batch_; }

  /// None for an op on whole values only.
  std::optional<OfShare> share_of(OpId id, std::int64_t rows) const {
    const std::vector<bool> split = split_operands(id);
    const bool any = std::any_of(split.begin(), split.end(), [](bool one) { return one; });
    return any ? of_share(id, split, rows) : std::nullopt;
  }

 private:
  std::vector<bool> split_operands(OpId id) const {
    std::vector<bool> split;
    for (ValueId operand : graph_[id].operands) split.push_back(operand && by_rows(operand));
    return split;
  }

  std::optional<OfShare> of_share(OpId id, const std::vector<bool>& split,
                                  std::int64_t rows) const {
    const Op& op = graph_[id];
    if (!only_reads(op) || !op.definition->of_share) return std::nullopt;
    return op.definition->of_share({graph_, op}, split, rows);
  }

  const Graph& graph_;
  const std::int64_t batch_;
  std::vector<Form> of_;  // by value
  bool works_ = false;
};

/// Ops stay in their order, each for all lanes before the next one: whatever it may see of bytes
/// that others write, it still sees.
class Splitter {
 public:
  Splitter(const Graph& graph, const OperatorTable& table, const Forms& forms, int lanes)
      : source_(graph),
        forms_(forms),
        builder_(out_.graph, table),
        whole_(graph.value_count()),
        lane_(static_cast<std::size_t>(lanes), std::vector<ValueId>(graph.value_count())) {
    out_.shares = lane_shares(forms.batch(), lanes);
  }

  BatchGraph split() {
    for (std::size_t i = 0; i < source_.value_count(); ++i) {
      if (source_[ValueId(i)].is_declared())
        whole_[i] = copy_declared(source_, ValueId(i), builder_);
    }
    for (OpId id : source_[Graph::body].ops) add(id);
    for (ValueId output : source_.outputs) {
      const std::vector<ValueId> pieces = pieces_of(output);
      out_.pieces.push_back(pieces.size());
      out_.graph.outputs.insert(out_.graph.outputs.end(), pieces.begin(), pieces.end());
    }
    if (source_.training) carry(*source_.training);
    verify(out_.graph);
    return std::move(out_);
  }

 private:
  void add(OpId id) {
    const Op& op = source_[id];
    if (!forms_.share_of(id, 1)) {
      for (ValueId operand : op.operands) {
        if (operand) whole(operand);
      }
      copy_op(source_, id, Op::shared_lane, whole_, builder_);
      return;
    }
    for (const LaneShare& share : out_.shares) {
      std::vector<ValueId>& mine = lane_[static_cast<std::size_t>(share.lane)];
      for (ValueId operand : op.operands) {
        if (operand) mine[operand.index] = of_lane(operand, share);
      }
      copy_op(source_, id, share.lane, forms_.share_of(id, share.count)->attributes, mine,
              builder_);
    }
  }

  /// What a lane's op reads of a value.
  ValueId of_lane(ValueId id, const LaneShare& share) {
    if (!forms_.by_rows(id)) return whole(id);
    const ValueId mine = lane_[static_cast<std::size_t>(share.lane)][id.index];
    if (mine) return mine;
    // An input that nobody has read yet.
    builder_.context = {.phase = Phase::forward, .lane = share.lane, .where = source_[id].name};
    return builder_.add1("slice", {whole_[id.index]},
                         {{"begin", share.begin}, {"end", share.begin + share.count}});
  }

  ValueId whole(ValueId id) {
    ValueId& known = whole_[id.index];
    if (known) return known;
    const Op& maker = source_[source_[id].producer];
    builder_.context = {.phase = maker.phase, .lane = Op::shared_lane, .where = maker.where};
    known = builder_.add1("sum", lanes_of(id));
    return known;
  }

  std::vector<ValueId> lanes_of(ValueId id) const {
    std::vector<ValueId> all;
    for (const LaneShare& share : out_.shares)
      all.push_back(lane_[static_cast<std::size_t>(share.lane)][id.index]);
    return all;
  }

  std::vector<ValueId> pieces_of(ValueId output) {
    const bool cut = forms_.by_rows(output) && !source_[output].is_declared();
    return cut ? lanes_of(output) : std::vector{whole(output)};
  }

  void carry(const Training& training) {
    const bool added = forms_.of(training.loss) == Result::sum;
    out_.losses = added ? lanes_of(training.loss) : std::vector{whole(training.loss)};
    out_.graph.training = training;
    out_.graph.training->loss = out_.losses.front();
    for (ValueId& parameter : out_.graph.training->parameters) parameter = whole_[parameter.index];
  }

  const Graph& source_;
  const Forms& forms_;
  BatchGraph out_;
  Builder builder_;
  std::vector<ValueId> whole_;              // by value of the source
  std::vector<std::vector<ValueId>> lane_;  // [lane][value of the source]: rows, or terms of a sum
};

/// First axes of inputs, of at least two samples, as they come.
std::vector<std::int64_t> batches(const Graph& graph) {
  std::vector<std::int64_t> all;
  for (ValueId id : graph.declared(StorageClass::input)) {
    const Shape& shape = graph[id].shape;
    if (shape.rank() == 0 || shape[0] < 2) continue;
    if (std::find(all.begin(), all.end(), shape[0]) == all.end()) all.push_back(shape[0]);
  }
  return all;
}

std::string without_batch(const Graph& graph) {
  if (graph.region_count() > 1) return "a graph with blocks";
  for (OpId id : graph[Graph::body].ops) {
    if (graph[id].lane != Op::shared_lane) return describe(graph, id) + " is of a lane already";
  }
  return batches(graph).empty() ? "no input of two samples or more" : "";
}

}  // namespace

std::optional<BatchGraph> split_batch(const Graph& graph, const OperatorTable& table, int lanes,
                                      std::string* why) {
  expect_before_select(graph, "split_batch");
  std::string reason = without_batch(graph);
  if (reason.empty()) {
    for (const std::int64_t batch : batches(graph)) {
      const Forms forms(graph, batch);
      if (forms.refusal.empty()) return Splitter(graph, table, forms, lanes).split();
      if (reason.empty()) reason = forms.refusal;
    }
  }
  if (why != nullptr) *why = reason;
  return std::nullopt;
}

}  // namespace arenite::graph
