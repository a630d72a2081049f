#include "tests/oracle/dropped_edges.hpp"

#include <algorithm>

#include "tests/oracle/touches.hpp"

namespace arenite::oracle {
namespace {

using graph::Graph;
using graph::OpId;
using graph::TaskId;

/// Tasks that a path leads to.
class Reach {
 public:
  explicit Reach(const runtime::ProgramSpec& spec) : after_(spec.schedule.tasks.size()) {
    for (std::size_t t = 0; t < after_.size(); ++t) {
      for (TaskId p : spec.schedule.tasks[t].predecessors) after_[p.index].push_back(t);
    }
    for (const plan::TaskEdge& edge : spec.plan.reuse_edges)
      after_[edge.before.index].push_back(edge.after.index);
    rows_.assign(after_.size(), std::vector<bool>(after_.size(), false));
    for (std::size_t t = after_.size(); t-- > 0;) {
      for (std::size_t next : after_[t]) {
        rows_[t][next] = true;
        for (std::size_t i = 0; i < rows_[t].size(); ++i)
          rows_[t][i] = rows_[t][i] || rows_[next][i];
      }
    }
  }

  bool before(std::size_t a, std::size_t b) const { return rows_[a][b]; }

 private:
  std::vector<std::vector<std::size_t>> after_;
  std::vector<std::vector<bool>> rows_;
};

/// A touch, and where it is in a block.
struct Placed {
  Touch touch;
  std::size_t block = 0;
  std::int64_t begin = 0, end = 0;  // of the touched bytes
  std::int64_t storage_begin = 0, storage_end = 0;
};

std::vector<Placed> placed_touches(const runtime::ProgramSpec& spec, OpId op) {
  std::vector<Placed> all;
  for (const Touch& touch : touches(spec.graph, op)) {
    const plan::Placement& place = spec.plan.placement(touch.storage);
    if (place.external) continue;
    all.push_back({touch, place.block, place.offset + touch.begin, place.offset + touch.end,
                   place.offset, place.offset + place.bytes});
  }
  return all;
}

/// Ops that have a say in what is seen after a step.
std::vector<bool> live_ops(const Graph& graph) {
  std::vector<bool> live(graph.op_count(), false);
  std::vector<Touch> needed;
  for (graph::ValueId id : graph.outputs) {
    const std::int64_t begin = graph[id].offset;
    needed.push_back({graph.root(id), begin, begin + value_bytes(graph, id), true});
  }
  const auto is_needed = [&](const Touch& touch) {
    if (!touch.writes) return false;
    if (graph::is_persistent(graph.storage(touch.storage).cls)) return true;
    return std::ranges::any_of(needed, [&](const Touch& later) {
      return later.storage == touch.storage && later.begin < touch.end && touch.begin < later.end;
    });
  };
  const auto& ops = graph[Graph::body].ops;
  for (auto id = ops.rbegin(); id != ops.rend(); ++id) {
    if (graph[*id].kernel.empty()) continue;
    const std::vector<Touch> mine = touches(graph, *id);
    live[id->index] = std::ranges::any_of(mine, is_needed);
    if (live[id->index]) std::ranges::copy_if(mine, std::back_inserter(needed), &Touch::reads);
  }
  return live;
}

class Meetings {
 public:
  explicit Meetings(const runtime::ProgramSpec& spec)
      : spec_(spec),
        reach_(spec),
        live_(live_ops(spec.graph)),
        touches_(spec.graph.op_count()),
        users_(spec.graph.storage_count()),
        where_(spec.graph.op_count()) {
    for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
      const auto& ops = spec.schedule.tasks[t].ops;
      for (std::size_t at = 0; at < ops.size(); ++at) {
        where_[ops[at].index] = {t, at};
        touches_[ops[at].index] = placed_touches(spec, ops[at]);
        for (const Placed& x : touches_[ops[at].index])
          users_[x.touch.storage.index].emplace_back(ops[at], x);
      }
    }
  }

  const Reach& reach() const noexcept { return reach_; }

  void add(std::size_t before, std::size_t after, std::vector<Meeting>& into) const {
    for (OpId a : spec_.schedule.tasks[before].ops) {
      for (OpId b : spec_.schedule.tasks[after].ops) {
        bool meet = waits_for(b, a), matters = false;
        for (const Placed& x : touches_[a.index]) {
          for (const Placed& y : touches_[b.index]) {
            if (!meets(x, y)) continue;
            meet = true;
            matters = matters || overwrites(y, a, x) || leaves(a, x, b, y);
          }
        }
        if (meet) into.push_back({a, b, matters});
      }
    }
  }

 private:
  static bool overlap(std::int64_t a, std::int64_t a_end, std::int64_t b, std::int64_t b_end) {
    return a < b_end && b < a_end;
  }

  /// Two tenants of a byte, or a writer of a storage and another user of the same bytes.
  static bool meets(const Placed& x, const Placed& y) {
    if (x.block != y.block) return false;
    if (x.touch.storage != y.touch.storage)
      return overlap(x.storage_begin, x.storage_end, y.storage_begin, y.storage_end);
    return (x.touch.writes || y.touch.writes) && overlap(x.begin, x.end, y.begin, y.end);
  }

  /// By a value of no bytes.
  bool waits_for(OpId reader, OpId maker) const {
    return std::ranges::any_of(spec_.graph[reader].operands, [&](graph::ValueId operand) {
      return operand && spec_.graph[operand].producer == maker &&
             spec_.graph.root_storage(operand).bytes == 0;
    });
  }

  bool before(OpId a, OpId b) const {
    const auto &x = where_[a.index], &y = where_[b.index];
    return x.task == y.task ? x.position < y.position : reach_.before(x.task, y.task);
  }

  /// `writer` changes what `reader` reads behind it.
  bool overwrites(const Placed& writer, OpId reader, const Placed& read) const {
    return live_[reader.index] && writer.touch.writes && read.touch.reads &&
           overlap(writer.begin, writer.end, read.begin, read.end);
  }

  /// What `a` writes, or its storage's bytes once `a` is done with them, lie where somebody reads
  /// what `b` has made.
  bool leaves(OpId a, const Placed& x, OpId b, const Placed& y) const {
    if (x.touch.storage == y.touch.storage) return overwrites(x, b, y);
    if (!y.touch.writes) return false;
    const bool last = std::ranges::none_of(users_[x.touch.storage.index],
                                           [&](const auto& user) { return before(a, user.first); });
    const std::int64_t begin = last ? x.storage_begin : x.begin, end = last ? x.storage_end : x.end;
    if (!last && !x.touch.writes) return false;
    return std::ranges::any_of(users_[y.touch.storage.index], [&](const auto& user) {
      const auto& [reader, read] = user;
      return reader != b && live_[reader.index] && read.touch.reads && !before(reader, b) &&
             overlap(begin, end, read.begin, read.end);
    });
  }

  struct Point {
    std::size_t task = 0, position = 0;
  };

  const runtime::ProgramSpec& spec_;
  const Reach reach_;
  const std::vector<bool> live_;
  std::vector<std::vector<Placed>> touches_;                 // by op
  std::vector<std::vector<std::pair<OpId, Placed>>> users_;  // by storage
  std::vector<Point> where_;                                 // by op
};

}  // namespace

std::string text(const RandomProgram& program, const Drop& drop) {
  const runtime::ProgramSpec& spec = program.programs[drop.program];
  const auto task = [&](TaskId id) {
    return "task " + std::to_string(id.index) + " (" +
           describe(spec.graph, spec.schedule[id].ops.front()) + ")";
  };
  return (drop.reuse ? "the reuse edge from " : "the edge from ") + task(drop.edge.before) +
         " to " + task(drop.edge.after) + " of program '" + spec.name + "'";
}

std::vector<Drop> drops(const RandomProgram& program) {
  std::vector<Drop> all;
  for (std::size_t p = 0; p < program.programs.size(); ++p) {
    const runtime::ProgramSpec& spec = program.programs[p];
    const auto consider = [&](bool reuse, plan::TaskEdge edge) {
      const Drop drop{p, reuse, edge};
      const RandomProgram broken = without(program, drop);
      if (!Reach(broken.programs[p]).before(edge.before.index, edge.after.index))
        all.push_back(drop);
    };
    for (const plan::TaskEdge& edge : spec.plan.reuse_edges) consider(true, edge);
    for (std::size_t t = 0; t < spec.schedule.tasks.size(); ++t) {
      for (TaskId before : spec.schedule.tasks[t].predecessors)
        consider(false, {before, TaskId(t)});
    }
  }
  return all;
}

RandomProgram without(const RandomProgram& program, const Drop& drop) {
  RandomProgram broken = program;
  runtime::ProgramSpec& spec = broken.programs[drop.program];
  if (drop.reuse) {
    std::erase(spec.plan.reuse_edges, drop.edge);
  } else {
    std::erase(spec.schedule.tasks[drop.edge.after.index].predecessors, drop.edge.before);
  }
  return broken;
}

std::vector<Meeting> meetings(const RandomProgram& broken, const Drop& drop) {
  const runtime::ProgramSpec& spec = broken.programs[drop.program];
  const std::size_t before = drop.edge.before.index, after = drop.edge.after.index;
  const Meetings finder(spec);
  const Reach& reach = finder.reach();
  std::vector<Meeting> all;
  finder.add(before, after, all);
  for (std::size_t a = 0; a <= before; ++a) {
    if (a != before && !reach.before(a, before)) continue;
    for (std::size_t b = after; b < spec.schedule.tasks.size(); ++b) {
      if (b != after && !reach.before(after, b)) continue;
      if ((a != before || b != after) && !reach.before(a, b)) finder.add(a, b, all);
    }
  }
  std::stable_partition(all.begin(), all.end(), [](const Meeting& one) { return one.matters; });
  return all;
}

std::vector<std::vector<Event>> orders_against(const Timeline& timeline,
                                               const RandomProgram& broken, const Drop& drop,
                                               const Meeting& meeting) {
  std::vector<std::size_t> overwritten, left_over;
  for (std::size_t step = 0; step < broken.steps.size(); ++step) {
    if (broken.steps[step].program != drop.program) continue;
    const std::size_t before = timeline.find(step, meeting.before),
                      after = timeline.find(step, meeting.after);
    std::ranges::copy(timeline.before(before), std::back_inserter(overwritten));
    for (std::vector<std::size_t>* list : {&overwritten, &left_over}) {
      list->push_back(after);
      list->push_back(before);
    }
  }
  return {lead_with(timeline, overwritten), lead_with(timeline, left_over)};
}

}  // namespace arenite::oracle
