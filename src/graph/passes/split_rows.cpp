#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/readers.hpp"
#include "src/graph/passes/rebuild.hpp"
#include "src/graph/passes/row_parts.hpp"
#include "src/graph/versions.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace arenite::graph {
namespace {

constexpr std::int64_t most_parts = 8;  ///< but one a lane; more would only add tasks

/// How many tasks' worth of work make a split pay where nobody waits: each part still fills two.
constexpr double least_tasks = 4, tasks_of_part = 2;

std::vector<RowPart> parts_of(std::int64_t rows, double microseconds, std::int64_t lanes,
                              const TargetProfile& target) {
  if (lanes > 1) {
    // At a step's end all lanes wait for what they share: each worker does its parts of it, and
    // who has done them helps with others.
    const double each =
        std::max(static_cast<double>(lanes) * target.shared_task_microseconds(), 1e-3);
    const double most = static_cast<double>(std::max<std::int64_t>(most_parts / lanes, 1));
    const double wanted = std::min(most, std::round(microseconds / each));
    return row_parts(rows, static_cast<std::int64_t>(wanted) * lanes, lanes);
  }
  if (microseconds < least_tasks * target.task_microseconds) return {};
  const double wanted = std::min(static_cast<double>(most_parts),
                                 microseconds / (tasks_of_part * target.task_microseconds));
  return row_parts(rows, static_cast<std::int64_t>(wanted), lanes);
}

class RowSplitter {
 public:
  RowSplitter(const Graph& graph, const TargetProfile& target, Remarks* remarks)
      : graph_(graph), readers_(graph), is_split_(graph.op_count()) {
    const std::int64_t lanes = lane_count(graph);
    for (OpId id : graph_[Graph::body].ops) {
      Obstacle why = whole(id);
      const OpId reader = reader_of(id);
      std::vector<RowPart> parts;
      if (!why) {
        parts = parts_of(graph_[graph_[id].results[0]].shape[0],
                         target.microseconds({graph_, graph_[id]}), lanes, target);
        if (parts.size() < 2) why = {"parts would be smaller than tasks"};
        if (pairs_.contains(reader)) why = {.words = "%o is split for another one", .op = reader};
      }
      note(
          lanes > 1 || !why ? remarks : nullptr, graph_, why,
          [&] { return describe(graph_, id) + (reader ? ", " + describe(graph_, reader) : ""); },
          [&] { return std::to_string(parts.size()) + " parts"; });
      if (why) continue;
      is_split_[id.index] = true;
      pairs_.emplace(reader, Pair{id, std::move(parts)});
    }
  }

  int count() const noexcept { return static_cast<int>(pairs_.size()); }

  bool replace(OpId id, const std::vector<ValueId>& map, Builder& builder) const {
    if (const auto pair = pairs_.find(id); pair != pairs_.end()) {
      for (const RowPart& rows : pair->second.parts)
        add_part(pair->second.op, id, rows, map, builder);
      return true;
    }
    return is_split_[id.index];
  }

 private:
  struct Pair {
    OpId op;
    std::vector<RowPart> parts;
  };

  OpId reader_of(OpId id) const {
    const auto& results = graph_[id].results;
    return results.empty() || readers_.of(results[0]).empty() ? OpId{}
                                                              : readers_.of(results[0]).front().op;
  }

  /// What the op is on these rows of its only result, and of operands `like` that; none: it cannot
  /// make them alone.
  std::optional<Attributes> of_rows(OpId id, ValueId like, const RowPart& rows) const {
    const Op& op = graph_[id];
    if (!op.definition->of_share) return std::nullopt;
    Share share{.split = {}, .begin = rows.begin, .count = rows.end - rows.begin};
    for (const ValueId operand : op.operands)
      share.split.push_back(like && has_rows(like, operand) ? Split::rows : Split::none);
    auto made = op.definition->of_share({graph_, op}, share);
    if (!made || !made->name.empty() ||
        std::ranges::count(made->results, OfShare::Result::rows) != std::ssize(made->results))
      return std::nullopt;
    return std::move(made->attributes);
  }

  /// Nothing where the op makes its result row by row, for one op that updates row by row.
  Obstacle whole(OpId id) const {
    const Op& op = graph_[id];
    const OpId reader = reader_of(id);
    if (op.results.size() != 1 || !reader || !only_renews(graph_[reader])) return not_meant;
    const ValueId result = op.results[0];
    const Shape& shape = graph_[result].shape;
    if (shape.rank() == 0 || shape[0] < 2 || op.definition->views) return not_meant;
    const RowPart first{.begin = 0, .end = 1};
    if (!of_rows(id, {}, first)) return not_meant;
    if (const Obstacle why = readers_.only_for(result, reader)) return why;
    if (!as_made(graph_, result)) return {.words = "%v is placed by hand", .value = result};
    if (!of_rows(reader, result, first))
      return {.words = "%o does not work row by row", .op = reader};
    for (const ValueId whole : graph_[reader].results) {
      if (!readers_.unused(whole)) return {.words = "%v is needed as a whole", .value = whole};
      if (graph_[whole].shape != shape)
        return {.words = "%o does not work row by row", .op = reader};
    }
    if (reads_renewed(graph_, id, reader))
      return {.words = "parts of %o would see what others update", .op = reader};
    return readers_.moved(id, id, reader);
  }

  /// As long as `like` in all axes.
  bool has_rows(ValueId like, ValueId operand) const {
    return operand && graph_[operand].shape == graph_[like].shape;
  }

  void add_part(OpId id, OpId reader, const RowPart& rows, const std::vector<ValueId>& map,
                Builder& builder) const {
    const Op &op = graph_[id], &by_rows = graph_[reader];
    // A lane's part does not stand in its line, which would wait for all lanes' samples: it goes
    // with the update, when its worker has nothing else to do.
    const bool mine = rows.lane >= 0;
    builder.context = {.phase = mine ? by_rows.phase : op.phase,
                       .lane = mine ? rows.lane : op.lane,
                       .where = op.where};
    const ValueId part = builder.add1(op.name(), mapped(op.operands, map), *of_rows(id, {}, rows));

    builder.context = {
        .phase = by_rows.phase, .lane = mine ? rows.lane : by_rows.lane, .where = by_rows.where};
    std::vector<ValueId> operands;
    for (ValueId operand : by_rows.operands) {
      if (!operand) {
        operands.emplace_back();
      } else if (operand == op.results[0]) {
        operands.push_back(part);
      } else if (has_rows(op.results[0], operand)) {
        operands.push_back(builder.add1("slice", {map[operand.index]},
                                        {{"begin", rows.begin}, {"end", rows.end}}));
      } else {
        operands.push_back(map[operand.index]);
      }
    }
    builder.add(by_rows.name(), operands, *of_rows(reader, op.results[0], rows));
  }

  const Graph& graph_;
  const Readers readers_;
  std::vector<bool> is_split_;  // by op: one that is given in parts
  std::map<OpId, Pair> pairs_;  // by reader
};

}  // namespace

int split_rows(Graph& graph, const OperatorTable& table, const TargetProfile& target,
               Remarks* remarks) {
  expect_before_select(graph, "split_rows");
  check(target);
  return rewrite(graph, table, RowSplitter(graph, target, remarks));
}

}  // namespace arenite::graph
