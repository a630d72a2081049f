// Runs a graph on tokens instead of numbers, at planned addresses or at addresses of its own: a
// plan is sound where both see the same. For tests.
#pragma once

#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/plan/step_plan.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace arenite::plan::testing {

/// Tokens stand for 256 bytes each; values and their offsets are multiples of that, integers count
/// as one.
class RegionReplay {
 public:
  using Token = std::uint64_t;

  /// Without a plan each storage that is no other's has bytes of its own.
  RegionReplay(const graph::Graph& graph, const graph::Schedule& schedule, const StepPlan* plan,
               unsigned seed)
      : graph_(graph), schedule_(schedule), plan_(plan), seed_(seed) {}

  /// What the outputs hold at the end.
  std::vector<Token> run() {
    for (std::size_t i = 0; i < graph_.value_count(); ++i) {
      const graph::ValueId id(i);
      if (graph_[id].is_declared()) write(id, mix(seed_, i));
    }
    for (const graph::Task& task : schedule_.tasks) {
      for (const graph::OpId op : task.ops) visit(op);
    }
    std::vector<Token> seen;
    for (const graph::ValueId output : graph_.outputs) seen.push_back(read(output));
    return seen;
  }

  std::size_t ops_run() const { return ops_run_; }

 private:
  using Address = std::pair<std::size_t, std::int64_t>;  // block or storage, and tokens from it
  static constexpr std::int64_t granule = 256;

  static Token mix(Token a, Token b) {
    Token x = a * 0x9e3779b97f4a7c15u ^ (b + 0x7f4a7c15u) * 0xc2b2ae3d27d4eb4fu;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
  }

  Address address(graph::ValueId id) const {
    const graph::StorageId root = graph_.root(id);
    const std::int64_t offset = graph_[id].offset / granule;
    if (plan_ == nullptr) return {root.index, offset};
    const Placement& place = plan_->placement(root);
    return {place.block, place.offset / granule + offset};
  }
  std::int64_t tokens(graph::ValueId id) const {
    const graph::Value& value = graph_[id];
    return (byte_size(value.type, value.shape, value.layout) + granule - 1) / granule;
  }

  Token read(graph::ValueId id) {
    const auto [block, at] = address(id);
    Token sum = 0;
    for (std::int64_t i = 0; i < tokens(id); ++i) sum = mix(sum, memory_[{block, at + i}]);
    return sum;
  }
  void write(graph::ValueId id, Token token) {
    const auto [block, at] = address(id);
    for (std::int64_t i = 0; i < tokens(id); ++i)
      memory_[{block, at + i}] = mix(token, static_cast<Token>(i));
  }
  std::vector<Token> load(graph::ValueId id) {
    const auto [block, at] = address(id);
    std::vector<Token> list;
    for (std::int64_t i = 0; i < tokens(id); ++i) list.push_back(memory_[{block, at + i}]);
    return list;
  }
  void store(graph::ValueId id, const std::vector<Token>& list, std::int64_t from = 0) {
    const auto [block, at] = address(id);
    for (std::size_t i = 0; i < list.size(); ++i)
      memory_[{block, at + from + static_cast<std::int64_t>(i)}] = list[i];
  }

  /// With a plan, one after another, through the workspace where a value is set aside: what a
  /// runtime does. Else at once, as is meant.
  void hand_over(const graph::Op& op, const std::vector<graph::Handover>& all) {
    if (plan_ == nullptr) {
      std::vector<std::vector<Token>> loaded;
      for (const graph::Handover& h : all) loaded.push_back(load(h.from));
      for (std::size_t i = 0; i < all.size(); ++i) store(all[i].into, loaded[i]);
      return;
    }
    std::int64_t aside = 0;
    for (const graph::Handover& h : all) {
      if (!h.staged) continue;
      store(op.workspace, load(h.from), aside);
      aside += tokens(h.from);
    }
    aside = 0;
    for (const graph::Handover& h : all) {
      if (!h.staged) {
        store(h.into, load(h.from));
        continue;
      }
      std::vector<Token> list = load(op.workspace);
      list.erase(list.begin(), list.begin() + aside);
      list.resize(static_cast<std::size_t>(tokens(h.from)));
      store(h.into, list);
      aside += tokens(h.from);
    }
  }

  bool truth(graph::ValueId condition) { return read(condition) % 3 != 0; }

  void visit(graph::OpId id) {
    const graph::Op& op = graph_[id];
    if (op.regions.empty()) return run_plain(id);
    if (op.definition->control == graph::Control::branch) {
      const std::size_t side = truth(op.operands[0]) ? 0 : 1;
      for (graph::OpId inner : graph_[op.regions[side]].ops) visit(inner);
      hand_over(op, handovers_at_end(graph_, op, side));
      return;
    }
    const graph::Region& body = graph_[op.regions[0]];
    std::int64_t trips = op.attributes.integer("max_trips");
    if (op.operands[0]) trips = static_cast<std::int64_t>(read(op.operands[0]) % 4) % (trips + 1);
    bool on = !op.operands[1] || truth(op.operands[1]);
    hand_over(op, handovers_at_entry(graph_, op));
    for (std::int64_t trip = 0; trip < trips && on; ++trip) {
      write(body.parameters[0], mix(77, static_cast<Token>(trip)));
      for (graph::OpId inner : body.ops) visit(inner);
      on = !op.operands[1] || truth(body.results[0]);
      hand_over(op, handovers_at_end(graph_, op, 0));
    }
    hand_over(op, handovers_at_exit(graph_, op));
  }

  void run_plain(graph::OpId id) {
    if (graph::is_view_op(graph_, id)) return;
    ++ops_run_;
    const graph::Op& op = graph_[id];
    Token token = mix(0, id.index);
    for (const graph::ValueId operand : op.operands) {
      if (operand) token = mix(token, read(operand));
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) write(op.results[r], mix(token, r));
  }

  const graph::Graph& graph_;
  const graph::Schedule& schedule_;
  const StepPlan* plan_;
  const Token seed_;
  std::map<Address, Token> memory_;
  std::size_t ops_run_ = 0;
};

/// The tasks in some order that the edges of the schedule and the plan allow.
inline graph::Schedule shuffled(const graph::Schedule& schedule, const StepPlan& plan,
                                std::mt19937& random) {
  std::vector<std::size_t> waits_for(schedule.tasks.size(), 0);
  std::vector<std::vector<std::size_t>> next(schedule.tasks.size());
  const auto edge = [&](std::size_t before, std::size_t after) {
    next[before].push_back(after);
    ++waits_for[after];
  };
  for (std::size_t t = 0; t < next.size(); ++t) {
    for (graph::TaskId p : schedule.tasks[t].predecessors) edge(p.index, t);
  }
  for (const TaskEdge& e : plan.reuse_edges) edge(e.before.index, e.after.index);
  std::vector<std::size_t> ready;
  for (std::size_t t = 0; t < next.size(); ++t) {
    if (waits_for[t] == 0) ready.push_back(t);
  }
  graph::Schedule result;
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::size_t t = ready.back();
    ready.pop_back();
    result.tasks.push_back(schedule.tasks[t]);
    for (std::size_t after : next[t]) {
      if (--waits_for[after] == 0) ready.push_back(after);
    }
  }
  return result;
}

}  // namespace arenite::plan::testing
