#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>

#include "src/graph/passes/ask_share.hpp"
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
      std::vector<Part> parts;
      if (!why) {
        const auto rows = parts_of(graph_[graph_[id].results[0]].shape[0],
                                   target.microseconds({graph_, graph_[id]}), lanes, target);
        parts = in_parts(id, reader, rows);
        if (parts.empty()) why = {.words = "%o does not work row by row", .op = reader};
        if (rows.size() < 2) why = {"parts would be smaller than tasks"};
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
      for (const Part& part : pair->second.parts) add_part(pair->second.op, id, part, map, builder);
      return true;
    }
    return is_split_[id.index];
  }

 private:
  struct Part {
    RowPart rows;
    Attributes made, update;  ///< of the op, and of its reader
  };
  struct Pair {
    OpId op;
    std::vector<Part> parts;
  };

  OpId reader_of(OpId id) const {
    const auto& results = graph_[id].results;
    return results.empty() || readers_.of(results[0]).empty() ? OpId{}
                                                              : readers_.of(results[0]).front().op;
  }

  /// What the op is on these rows of its results, and of its operands that are `like` one; none: it
  /// cannot make them alone.
  std::optional<Attributes> of_rows(OpId id, ValueId like, const RowPart& rows) const {
    Share share{.split = {}, .begin = rows.begin, .count = rows.end - rows.begin};
    for (const ValueId operand : graph_[id].operands)
      share.split.push_back(like && is_like(like, operand) ? Split::rows : Split::none);
    auto made = ask_share(graph_, id, share);
    if (!made || !made->name.empty() ||
        std::ranges::count(made->results, OfShare::Result::rows) != std::ssize(made->results))
      return std::nullopt;
    return std::move(made->attributes);
  }

  /// Nothing where the op may make its result row by row, for one op that updates row by row.
  Obstacle whole(OpId id) const {
    const Op& op = graph_[id];
    const OpId reader = reader_of(id);
    if (op.results.size() != 1 || !reader || !only_renews(graph_[reader])) return not_meant;
    const ValueId result = op.results[0];
    const Shape& shape = graph_[result].shape;
    if (shape.rank() == 0 || shape[0] < 2 || op.definition->views) return not_meant;
    if (!of_rows(id, {}, {.begin = 0, .end = 1})) return not_meant;
    if (const Obstacle why = readers_.only_for(result, reader)) return why;
    if (!as_made(graph_, result)) return {.words = "%v is placed by hand", .value = result};
    for (const ValueId whole : graph_[reader].results) {
      if (!readers_.unused(whole)) return {.words = "%v is needed as a whole", .value = whole};
    }
    if (reads_renewed(graph_, id, reader))
      return {.words = "parts of %o would see what others update", .op = reader};
    return readers_.moved(id, id, reader);
  }

  bool is_like(ValueId like, ValueId operand) const {
    return operand && graph_[operand].shape == graph_[like].shape;
  }

  /// What both ops are on each of the parts; nothing where one of them cannot be had so.
  std::vector<Part> in_parts(OpId id, OpId reader, const std::vector<RowPart>& rows) const {
    std::vector<Part> parts;
    for (const RowPart& one : rows) {
      auto made = of_rows(id, {}, one), update = of_rows(reader, graph_[id].results[0], one);
      if (!made || !update) return {};
      parts.push_back({one, std::move(*made), std::move(*update)});
    }
    return parts;
  }

  void add_part(OpId id, OpId reader, const Part& of, const std::vector<ValueId>& map,
                Builder& builder) const {
    const Op &op = graph_[id], &update = graph_[reader];
    const RowPart& rows = of.rows;
    const std::int64_t count = rows.end - rows.begin;
    // A lane's part does not stand in its line, which would wait for all lanes' samples: it goes
    // with the update, when its worker has nothing else to do.
    const bool mine = rows.lane >= 0;
    builder.context = {.phase = mine ? update.phase : op.phase,
                       .lane = mine ? rows.lane : op.lane,
                       .where = op.where};
    const ValueId part = builder.add(op.definition, mapped(op.operands, map), of.made)[0];
    check_share(graph_, id, 0, OfShare::Result::rows, count, builder.graph()[part].shape);

    builder.context = {
        .phase = update.phase, .lane = mine ? rows.lane : update.lane, .where = update.where};
    std::vector<ValueId> operands;
    for (ValueId operand : update.operands) {
      if (!operand) {
        operands.emplace_back();
      } else if (operand == op.results[0]) {
        operands.push_back(part);
      } else if (is_like(op.results[0], operand)) {
        operands.push_back(builder.add1("slice", {map[operand.index]},
                                        {{"begin", rows.begin}, {"end", rows.end}}));
      } else {
        operands.push_back(map[operand.index]);
      }
    }
    const auto made = builder.add(update.definition, operands, of.update);
    for (std::size_t i = 0; i < made.size(); ++i) {
      check_share(graph_, reader, i, OfShare::Result::rows, count, builder.graph()[made[i]].shape);
    }
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
