#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>

#include "src/graph/passes/batch_forms.hpp"
#include "src/graph/passes/in_mode.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace arenite::graph {
namespace {

class ModeRewriter {
 public:
  ModeRewriter(const Graph& graph, Mode mode, int shards, Remarks* remarks)
      : graph_(graph), mode_(mode), shards_(shards), remarks_(remarks) {
    const std::vector<BatchAxis> axes = batch_axes(graph);
    if (!axes.empty()) samples_ = axes.front().rows;
    if (!graph.entries.empty()) find_wanted();
  }

  bool replace(OpId id, std::vector<ValueId>& map, Builder& builder) {
    const Op& op = graph_[id];
    if (!op.definition->in_mode) return false;
    builder.context = {.phase = op.phase, .lane = op.lane, .where = op.where};
    ModeContext context{.builder = builder,
                        .op = op,
                        .mode = mode_,
                        .operands = mapped(op.operands, map),
                        .number = numbers_[std::string(op.name())]++,
                        .samples = samples_,
                        .shards = shards_,
                        .position = [&] { return position(builder); },
                        .keeps = keeps(op)};
    const std::vector<ValueId> made = made_in_mode(graph_, id, context);
    note_if_of_shard(id, builder.graph(), made);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const bool is_operand =
          std::ranges::find(context.operands, made.at(i)) != context.operands.end();
      if (!is_operand) take_after(op.results[i], builder.graph(), made[i]);
    }
    map_results(op, made, map);
    applied_.needs_whole_batch = applied_.needs_whole_batch || context.needs_whole_batch;
    ++applied_.ops;
    if (remarks_) {
      remarks_->done.push_back(
          {describe(graph_, id), mode_ == Mode::train ? "as in training" : "as in an evaluation"});
    }
    return true;
  }

  ModeApplied applied() && { return std::move(applied_); }

 private:
  /// Blocks are not cut.
  void note_if_of_shard(OpId id, const Graph& target, const std::vector<ValueId>& made) {
    const OpId maker = target[made.front()].producer;
    if (!maker || !target[maker].definition->in_mode) return;
    if (applied_.of_shard.empty()) applied_.of_shard = describe(graph_, id);
    const auto& body = graph_[Graph::body].ops;
    if (std::ranges::find(body, id) != body.end()) return;
    fail({.found = "an op of each shard in a block",
          .expected = "it outside of blocks, or of the whole batch",
          .where = describe(graph_, id)});
  }

  /// By result: whether the new version that it is is wanted. An entry says what it keeps, and may
  /// read more: not by what only makes another version of it. Whatever else runs keeps all.
  std::vector<bool> keeps(const Op& op) const {
    std::vector<bool> wanted(op.results.size(), true);
    if (graph_.entries.empty()) return wanted;
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = wanted_[op.results[i].index];
    return wanted;
  }

  void find_wanted() {
    wanted_.resize(graph_.value_count());
    const auto want = [&](const std::vector<ValueId>& ids) {
      for (const ValueId id : ids) {
        if (id) wanted_[id.index] = true;
      }
    };
    want(graph_.outputs);
    want(graph_.entries.front().keeps);
    for (std::size_t r = 0; r < graph_.region_count(); ++r) want(graph_[RegionId(r)].results);
    const std::vector<OpId> ops = nested_ops(graph_);
    for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
      const Op& op = graph_[*id];
      std::vector<ValueId> read = op.operands;
      if (op.definition->in_mode) {
        for_each_renewed(op, [&](std::size_t result, std::size_t operand) {
          if (!wanted_[op.results[result].index]) read[operand] = {};
        });
      }
      want(read);
    }
  }

  void take_after(ValueId original, Graph& target, ValueId made) const {
    copy_placement(graph_, original, target, made);
    target[made].name = graph_[original].name;
  }

  ValueId position(Builder& builder) {
    if (position_) return position_;
    std::string name = "position";
    while (builder.graph().find(name)) name += "'";
    position_ = builder.declare(name, DType::int64, {1}, StorageClass::input);
    applied_.position = std::move(name);
    applied_.samples = std::max<std::int64_t>(samples_, 1);
    return position_;
  }

  const Graph& graph_;
  const Mode mode_;
  const int shards_;
  Remarks* const remarks_;
  std::int64_t samples_ = 0;
  std::map<std::string, std::int64_t> numbers_;  // by operator: of those so far
  ValueId position_;
  std::vector<bool> wanted_;  // of an entry's graph, by value
  ModeApplied applied_;
};

}  // namespace

std::vector<ValueId> made_in_mode(const Graph& graph, OpId id, ModeContext& context) {
  try {
    return graph[id].definition->in_mode(context);
  } catch (const Error& error) {
    ErrorText text = error.text();
    text.where = describe(graph, id) + (text.where.empty() ? "" : ", " + text.where);
    throw Error(text);
  }
}

ModeApplied apply_mode(Graph& graph, const OperatorTable& table, Mode mode, int shards,
                       Remarks* remarks) {
  const auto differs = [&](OpId id) { return static_cast<bool>(graph[id].definition->in_mode); };
  if (std::ranges::none_of(nested_ops(graph), differs)) return {};
  expect_before_select(graph, "apply_mode");
  ModeRewriter rewriter(graph, mode, shards, remarks);
  Graph made = rebuild(graph, table, [&](OpId id, std::vector<ValueId>& map, Builder& builder) {
    return rewriter.replace(id, map, builder);
  });
  graph = std::move(made);
  return std::move(rewriter).applied();
}

}  // namespace arenite::graph
