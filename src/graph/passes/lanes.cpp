#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/verify.hpp>

#include "src/graph/passes/rebuild.hpp"

#include <algorithm>

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

/// What depends on an input, and so exists once for each lane.
struct Batched {
  std::vector<bool> values, ops;

  explicit Batched(const Graph& graph)
      : values(graph.value_count(), false), ops(graph.op_count(), false) {
    for (ValueId id : graph.declared(StorageClass::input)) values[id.index] = true;
    for (OpId id : graph[Graph::body].ops) {
      const Op& op = graph[id];
      ops[id.index] = std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
        return operand && values[operand.index];
      });
      for (ValueId result : op.results) values[result.index] = ops[id.index];
    }
  }
};

/// Refuses ops that would see other bytes once all shared ops run before all lanes, and lanes one
/// beside the other.
class SharedValues {
 public:
  SharedValues(const Graph& graph, const Batched& batched)
      : graph_(graph), read_(graph.storage_count()), added_(graph.storage_count()) {
    for (OpId id : graph[Graph::body].ops) {
      const Op& op = graph[id];
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (!op.operands[i] || batched.values[op.operands[i].index]) continue;
        if (batched.ops[id.index]) {
          from_lane(id, i);
        } else {
          from_shared(id, i);
        }
      }
    }
  }

 private:
  void from_lane(OpId id, std::size_t i) {
    const ValueId operand = graph_[id].operands[i];
    const std::size_t root = graph_.root(operand).index;
    switch (graph_[id].effect(i)) {
      case Effect::read:
        read_[root] = true;
        break;
      case Effect::accumulate:
        added_[root] = true;
        break;
      case Effect::write:
      case Effect::read_write:
        refuse(id, operand, "overwritten by every lane");
    }
    if (read_[root] && added_[root]) refuse(id, operand, "read by lanes that accumulate into it");
  }

  void from_shared(OpId id, std::size_t i) {
    const ValueId operand = graph_[id].operands[i];
    const std::size_t root = graph_.root(operand).index;
    if (added_[root])
      refuse(id, operand, "used by all lanes together after they accumulate into it");
    if (read_[root] && graph_[id].effect(i) != Effect::read)
      refuse(id, operand, "written after lanes read it");
  }

  [[noreturn]] void refuse(OpId id, ValueId value, const std::string& how) const {
    fail({.found = "'" + graph_[value].name + "', which depends on no input, is " + how,
          .expected = "a value that lanes only read, or only accumulate into",
          .where = describe(graph_, id)});
  }

  const Graph& graph_;
  std::vector<bool> read_, added_;  // by lanes, by root storage
};

class LaneSplitter {
 public:
  LaneSplitter(const Graph& graph, const OperatorTable& table)
      : source_(graph), batched_(graph), builder_(out_.graph, table) {}

  LaneGraph split(const std::vector<LaneShare>& shares, const LaneInput& make_input) {
    const SharedValues checked(source_, batched_);
    std::vector<ValueId> common(source_.value_count());
    for (std::size_t i = 0; i < source_.value_count(); ++i) {
      if (!source_[ValueId(i)].producer && !batched_.values[i])
        common[i] = copy_declared(source_, ValueId(i), builder_);
    }
    copy_ops(common, false, Op::shared_lane);

    for (const LaneShare& share : shares) {
      std::vector<ValueId> mine = common;
      for (ValueId input : source_.declared(StorageClass::input)) {
        builder_.context = {
            .phase = Phase::forward, .lane = share.lane, .where = source_[input].name};
        mine[input.index] = make_input(builder_, source_[input], share);
      }
      copy_ops(mine, true, share.lane);
      std::vector<ValueId> outputs;
      for (ValueId output : source_.outputs) outputs.push_back(mine[output.index]);
      out_.graph.outputs.insert(out_.graph.outputs.end(), outputs.begin(), outputs.end());
      out_.outputs.push_back(std::move(outputs));
    }
    verify(out_.graph);
    return std::move(out_);
  }

 private:
  void copy_ops(std::vector<ValueId>& map, bool batched, int lane) {
    for (OpId id : source_[Graph::body].ops) {
      const Op& op = source_[id];
      if (!op.regions.empty()) {
        fail({.found = "a region op in a graph to be split into lanes",
              .expected = "a straight-line graph",
              .where = describe(source_, id)});
      }
      if (batched_.ops[id.index] != batched) continue;
      copy_op(source_, id, lane, map, builder_);
    }
  }

  const Graph& source_;
  const Batched batched_;
  LaneGraph out_;
  Builder builder_;
};

}  // namespace

LaneGraph split_lanes(const Graph& graph, const OperatorTable& table,
                      const std::vector<LaneShare>& shares, const LaneInput& make_input) {
  return LaneSplitter(graph, table).split(shares, make_input);
}

}  // namespace arenite::graph
