#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/ask_share.hpp"
#include "src/graph/passes/batch_forms.hpp"
#include "src/graph/passes/in_mode.hpp"
#include "src/graph/passes/linear.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/shards.hpp"
#include "src/graph/passes/verify_pass.hpp"
#include "src/graph/values.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <utility>

namespace arenite::graph {
namespace {

using Result = OfShare::Result;

/// No more shards, nor lanes in the largest of them, than there are samples.
BatchCut cut_of(std::int64_t batch, const BatchCut& wanted) {
  const std::int64_t shards = std::min<std::int64_t>(wanted.shards, batch),
                     largest = (batch - 1) / shards + 1;
  return {.shards = static_cast<int>(shards),
          .lanes = static_cast<int>(std::min<std::int64_t>(wanted.lanes, largest))};
}

/// Ops stay in their order, but for those of lanes, which stand lane by lane: as many as none but
/// lanes wait for, one lane behind the other, so that what a lane makes is used while it is hot.
class Splitter {
 public:
  Splitter(const Graph& graph, const OperatorTable& table, const BatchForms& forms,
           const BatchCut& cut)
      : source_(graph), forms_(forms), builder_(out_.graph, table), whole_(graph.value_count()) {
    out_.cut = cut_of(forms.rows(), cut);
    out_.lanes = lane_rows(forms.rows(), out_.cut);
    lane_.resize(static_cast<std::size_t>(out_.lanes.back().lane) + 1);
    for (const LaneRows& lane : out_.lanes) mine(lane).resize(graph.value_count());
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
    verify_pass(out_.graph);
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
    copy(id, source_[id].lane, source_[id].attributes, whole_);
  }

  /// What differs by mode still is of a shard, or of the whole, and is made of that here.
  void copy(OpId id, int lane, const Attributes& attributes, std::vector<ValueId>& map) {
    const Op& op = source_[id];
    if (!op.definition->in_mode) {
      copy_op(source_, id, lane, attributes, map, builder_);
      return;
    }
    const OpContext saved = std::exchange(builder_.context, {op.phase, lane, op.where});
    ModeContext context{.builder = builder_,
                        .op = op,
                        .mode = Mode::train,
                        .operands = mapped(op.operands, map),
                        .position = {},
                        .keeps = std::vector<bool>(op.results.size(), true)};
    map_results(op, made_in_mode(source_, id, context), map);
    builder_.context = saved;
  }

  /// The ops that wait, lane by lane.
  void flush() {
    for (const LaneRows& lane : out_.lanes) {
      std::vector<ValueId>& map = mine(lane);
      for (const OpId id : waiting_) {
        for (const ValueId operand : source_[id].operands) {
          if (operand) map[operand.index] = of_lane(operand, lane);
        }
        copy(id, lane.lane, forms_.share_of(id, lane.begin, lane.count).attributes, map);
        const auto& results = source_[id].results;
        for (std::size_t i = 0; i < results.size(); ++i) {
          Value& part = out_.graph[mine(lane)[results[i].index]];
          part.batch.clear();
          check_share(source_, id, i, *forms_.of(results[i]), lane.count, part.shape);
        }
      }
    }
    waiting_.clear();
  }

  /// What a lane's op reads of a value.
  ValueId of_lane(ValueId id, const LaneRows& lane) {
    if (forms_.of(id) != Result::rows) return whole_[id.index];
    if (const ValueId own = mine(lane)[id.index]) return own;
    // There as a whole, and read for the first time.
    if (out_.lanes.size() == 1) return whole_[id.index];
    const OpContext saved = builder_.context;
    builder_.context = {.phase = Phase::forward, .lane = lane.lane, .where = source_[id].name};
    const ValueId rows = builder_.add1("slice", {whole_[id.index]},
                                       {{"begin", lane.begin}, {"end", lane.begin + lane.count}});
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
    if (forms_.of(id) == Result::sum) {
      std::vector<Term> terms;
      for (const ValueId part : parts) terms.push_back({part, lane_of(out_.graph, part)});
      return known = add_up(builder_, out_.cut, terms);
    }
    for (ValueId& part : parts) part = builder_.add1("flatten", {part});
    const auto dims = source_[id].shape.dims();
    return known = builder_.add1("reshape", {builder_.add1("stack_columns", parts)},
                                 {{"shape", std::vector<std::int64_t>(dims.begin(), dims.end())}});
  }

  std::vector<ValueId>& mine(const LaneRows& lane) {
    return lane_[static_cast<std::size_t>(lane.lane)];
  }

  std::vector<ValueId> lanes_of(ValueId id) {
    std::vector<ValueId> all;
    for (const LaneRows& lane : out_.lanes) all.push_back(mine(lane)[id.index]);
    return all;
  }

  std::vector<ValueId> pieces_of(ValueId output) {
    const bool cut = forms_.of(output) == Result::rows && !forms_.is_there_whole(output);
    return cut ? lanes_of(output) : std::vector{whole(output)};
  }

  void carry(const Training& training) {
    const bool added = forms_.of(training.loss) == Result::sum;
    out_.losses = added                 ? lanes_of(training.loss)
                  : out_.cut.shards > 1 ? parts_of(training.loss)
                                        : std::vector{whole(training.loss)};
    out_.graph.training = training;
    out_.graph.training->loss = out_.losses.front();
    for (ValueId& parameter : out_.graph.training->parameters) parameter = whole_[parameter.index];
  }

  /// Of what is linear in sums, by what lanes have of these.
  std::vector<ValueId> parts_of(ValueId loss) {
    std::vector<ValueId> parts;
    const std::vector<OpId> ops = ops_from_sums(source_, forms_, loss);
    for (const LaneRows& lane : out_.lanes) {
      std::vector<ValueId> map = whole_;
      for (std::size_t i = 0; i < map.size(); ++i) {
        if (forms_.of(ValueId(i)) == Result::sum) map[i] = mine(lane)[i];
      }
      for (const OpId id : ops) copy_op(source_, id, lane.lane, map, builder_);
      parts.push_back(map[loss.index]);
    }
    return parts;
  }

  const Graph& source_;
  const BatchForms& forms_;
  BatchGraph out_;
  Builder builder_;
  std::vector<OpId> waiting_;               // of lanes, not yet added
  std::vector<ValueId> whole_;              // by value of the source
  std::vector<std::vector<ValueId>> lane_;  // [lane][value of the source]: rows, or terms of a sum
};

/// What keeps shards from being complete by themselves: an op that all of them wait for, or a loss
/// of all of them at once. Empty: nothing.
std::string one_shard(const Graph& graph, const BatchForms& forms) {
  std::vector<OpId> waits(graph.value_count());  // by value: the op that waits for all lanes
  std::vector<bool> of_lanes(graph.value_count(), false);
  for (const OpId id : graph[Graph::body].ops) {
    OpId all, sum;
    bool any = false;
    forms.for_each_read(id, [&](ValueId value) {
      if (waits[value.index]) all = waits[value.index];
      if (of_lanes[value.index] && forms.of(value) == Result::sum) sum = graph[value].producer;
      any = any || of_lanes[value.index];
    });
    if (forms.by_share(id)) {
      if (const OpId waited = all ? all : sum) {
        return describe(graph, id) + " waits for all shards' " + describe(graph, waited);
      }
    } else if (any) {
      all = id;
    }
    for (const ValueId result : graph[id].results) {
      of_lanes[result.index] = forms.by_share(id);
      waits[result.index] = all;
    }
  }
  if (!graph.training || linear_in_sums(graph, forms)[graph.training->loss.index]) return {};
  return "the loss '" + graph[graph.training->loss].name + "' is no sum over samples";
}

/// An op that is to see the samples of a whole shard, in its one lane; none: no op is.
OpId of_shard(const Graph& graph, const BatchForms& forms) {
  const auto& ops = graph[Graph::body].ops;
  const auto found = std::ranges::find_if(
      ops, [&](OpId id) { return graph[id].definition->in_mode && forms.by_share(id); });
  return found == ops.end() ? OpId{} : *found;
}

}  // namespace

std::vector<LaneRows> lane_rows(std::int64_t batch, const BatchCut& cut) {
  if (batch < 1 || cut.shards < 1 || cut.lanes < 1) {
    fail({.found = "a batch of " + std::to_string(batch) + " in " + std::to_string(cut.shards) +
                   " shards of " + std::to_string(cut.lanes) + " lanes",
          .expected = "at least 1 of each"});
  }
  std::vector<LaneRows> lanes;
  for_each_part(batch, cut.shards, [&](int shard, std::int64_t first, std::int64_t samples) {
    for_each_part(samples, cut.lanes, [&](int lane, std::int64_t begin, std::int64_t count) {
      lanes.push_back({.lane = shard * cut.lanes + lane, .begin = first + begin, .count = count});
    });
  });
  return lanes;
}

std::optional<BatchGraph> split_batch(const Graph& graph, const OperatorTable& table,
                                      const BatchCut& cut, const TargetProfile& target,
                                      Remarks* remarks) {
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
    const std::string objection = cut.shards > 1 && axis.rows > 1 ? one_shard(graph, forms) : "";
    BatchCut taken = objection.empty() ? cut : BatchCut{.lanes = cut.shards * cut.lanes};
    if (const OpId op = of_shard(graph, forms)) {
      if (remarks && taken.lanes > 1)
        remarks->left.push_back(
            {describe(graph, op), "it sees all of its shard, which has one lane then"});
      taken.lanes = 1;
    }
    BatchGraph made = Splitter(graph, table, forms, taken).split();
    made.one_shard = objection;
    return made;
  }
  if (remarks && remarks->left.empty())
    remarks->left.push_back({"the batch", "no input of two samples or more"});
  return std::nullopt;
}

}  // namespace arenite::graph
