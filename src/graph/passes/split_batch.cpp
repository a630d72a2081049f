#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include "src/graph/passes/batch_forms.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <utility>

namespace arenite::graph {

std::vector<LaneShare> lane_shares(std::int64_t batch, int lanes) {
  if (batch < 1 || lanes < 1) {
    fail(
        {.found = "a batch of " + std::to_string(batch) + " in " + std::to_string(lanes) + " lanes",
         .expected = "at least 1 of both"});
  }
  const std::int64_t count = std::min<std::int64_t>(lanes, batch);
  std::vector<LaneShare> shares;
  std::int64_t begin = 0;
  for (std::int64_t lane = 0; lane < count; ++lane) {
    const std::int64_t size = batch / count + (lane < batch % count ? 1 : 0);
    shares.push_back({.lane = static_cast<int>(lane), .begin = begin, .count = size});
    begin += size;
  }
  return shares;
}

namespace {

using Result = OfShare::Result;

/// Ops stay in their order, but for those of lanes, which stand lane by lane: as many as none but
/// lanes wait for, one lane behind the other, so that what a lane makes is used while it is hot.
class Splitter {
 public:
  Splitter(const Graph& graph, const OperatorTable& table, const BatchForms& forms, int lanes)
      : source_(graph), forms_(forms), builder_(out_.graph, table), whole_(graph.value_count()) {
    out_.shares = lane_shares(forms.rows(), lanes);
    lane_.assign(out_.shares.size(), std::vector<ValueId>(graph.value_count()));
  }

  BatchGraph split() {
    for (const ValueId id : declared_values(source_))
      whole_[id.index] = copy_declared(source_, id, builder_);
    for (const OpId id : source_[Graph::body].ops) add(id);
    flush();
    for (const ValueId output : source_.outputs) {
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
    if (forms_.by_share(id)) {
      for (const ValueId operand : source_[id].operands) {
        if (operand && forms_.of(operand) == Result::sum) whole(operand, id);
      }
      waiting_.push_back(id);
      return;
    }
    // Others may have to see what it makes a new version of as it was.
    if (only_renews(source_[id])) flush();
    forms_.for_each_read(id, [&](ValueId value) { whole(value, id); });
    copy_op(source_, id, source_[id].lane, whole_, builder_);
  }

  /// The ops that wait, lane by lane.
  void flush() {
    for (const LaneShare& share : out_.shares) {
      std::vector<ValueId>& mine = lane_[static_cast<std::size_t>(share.lane)];
      for (const OpId id : waiting_) {
        for (const ValueId operand : source_[id].operands) {
          if (operand) mine[operand.index] = of_lane(operand, share);
        }
        copy_op(source_, id, share.lane, forms_.share_of(id, share.begin, share.count).attributes,
                mine, builder_);
        for (const ValueId result : source_[id].results) check_share(id, result, share);
      }
    }
    waiting_.clear();
  }

  /// What an operator says of its shares is believed no further than its shapes go.
  void check_share(OpId id, ValueId result, const LaneShare& share) {
    Value& mine = out_.graph[lane_[static_cast<std::size_t>(share.lane)][result.index]];
    mine.batch.clear();  // a part of it
    const Shape& all = source_[result].shape;
    const bool rows = forms_.of(result) == Result::rows;
    if (rows && all.rank() == 0) refuse_share(id, "rows of a single number");
    const Shape expected = rows ? all.with(0, share.count) : all;
    if (mine.shape == expected) return;
    refuse_share(id, "a share of " + std::to_string(share.count) + " samples of shape " +
                         to_string(mine.shape) + ", for " + to_string(all) + " of " +
                         std::to_string(forms_.rows()));
  }

  [[noreturn]] void refuse_share(OpId id, std::string found) const {
    fail({.found = std::move(found),
          .expected = "as many rows of a result as the share has, or a term of its sum",
          .where = describe(source_, id),
          .hint = "of_share of operator '" + std::string(source_[id].name()) + "' says otherwise"});
  }

  /// What a lane's op reads of a value.
  ValueId of_lane(ValueId id, const LaneShare& share) {
    if (forms_.of(id) != Result::rows) return whole_[id.index];
    const ValueId mine = lane_[static_cast<std::size_t>(share.lane)][id.index];
    if (mine) return mine;
    // There as a whole, and read for the first time.
    if (out_.shares.size() == 1) return whole_[id.index];
    const OpContext saved = builder_.context;
    builder_.context = {.phase = Phase::forward, .lane = share.lane, .where = source_[id].name};
    const ValueId rows = builder_.add1(
        "slice", {whole_[id.index]}, {{"begin", share.begin}, {"end", share.begin + share.count}});
    builder_.context = saved;
    return rows;
  }

  /// All of a value, as `reader` sees it, or an output.
  ValueId whole(ValueId id, OpId reader = {}) {
    ValueId& known = whole_[id.index];
    if (known) return known;
    flush();
    const Op& maker = source_[source_[id].producer];
    builder_.context = {.phase = maker.phase,
                        .lane = Op::shared_lane,
                        .where = reader ? source_[reader].where : maker.where};
    std::vector<ValueId> parts = lanes_of(id);
    if (parts.size() == 1) return known = parts.front();
    if (forms_.of(id) == Result::sum) return known = builder_.add1("sum", parts);
    for (ValueId& part : parts) part = builder_.add1("flatten", {part});
    const auto dims = source_[id].shape.dims();
    return known = builder_.add1("reshape", {builder_.add1("stack_columns", parts)},
                                 {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())}});
  }

  std::vector<ValueId> lanes_of(ValueId id) const {
    std::vector<ValueId> all;
    for (const std::vector<ValueId>& mine : lane_) all.push_back(mine[id.index]);
    return all;
  }

  std::vector<ValueId> pieces_of(ValueId output) {
    const bool cut = forms_.of(output) == Result::rows && !forms_.is_there_whole(output);
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
  const BatchForms& forms_;
  BatchGraph out_;
  Builder builder_;
  std::vector<OpId> waiting_;               // of lanes, not yet added
  std::vector<ValueId> whole_;              // by value of the source
  std::vector<std::vector<ValueId>> lane_;  // [lane][value of the source]: rows, or terms of a sum
};

}  // namespace

std::optional<BatchGraph> split_batch(const Graph& graph, const OperatorTable& table, int lanes,
                                      const TargetProfile& target, Remarks* remarks) {
  expect_before_select(graph, "split_batch");
  const auto note = [&](const BatchAxis& axis, std::string reason) {
    if (!remarks) return;
    const std::string name = axis.name.empty() ? graph[axis.seeds.front()].name : axis.name;
    remarks->left.push_back({"batch '" + name + "'", std::move(reason)});
  };
  const auto& ops = graph[Graph::body].ops;
  const auto placed =
      std::ranges::find_if(ops, [&](OpId id) { return graph[id].lane != Op::shared_lane; });
  if (placed != ops.end()) {
    if (remarks)
      remarks->left.push_back({"the batch", describe(graph, *placed) + " is of a lane already"});
    return std::nullopt;
  }
  for (const BatchAxis& axis : batch_axes(graph)) {
    const BatchForms forms(graph, axis, target);
    if (!forms.objection().empty()) {
      note(axis, forms.objection());
      continue;
    }
    if (remarks) {
      for (const auto& [op, reason] : forms.refusals())
        remarks->left.push_back({describe(graph, op), reason});
    }
    return Splitter(graph, table, forms, lanes).split();
  }
  if (remarks && remarks->left.empty())
    remarks->left.push_back({"the batch", "no input of two samples or more"});
  return std::nullopt;
}

}  // namespace arenite::graph
