#include "src/plan/task_order.hpp"

#include <arenite/error.hpp>

#include <algorithm>
#include <tuple>

namespace arenite::plan {
namespace {

void check_edge(std::size_t before, std::size_t after, std::size_t tasks) {
  if (before < after && after < tasks) return;
  fail({.found = "an edge from task " + std::to_string(before) + " to task " +
                 std::to_string(after) + " of " + std::to_string(tasks),
        .expected = "edges from a task to a later one",
        .where = "schedule"});
}

}  // namespace

TaskOrder::TaskOrder(std::size_t size) : size_(size), bits_(row_of(size)) {}

TaskOrder::TaskOrder(const graph::Schedule& schedule, std::span<const TaskEdge> more)
    : TaskOrder(schedule.tasks.size()) {
  std::vector<std::vector<std::size_t>> extra(size_);
  for (const TaskEdge& edge : more) {
    check_edge(edge.before.index, edge.after.index, size_);
    extra[edge.after.index].push_back(edge.before.index);
  }
  for (std::size_t t = 0; t < size_; ++t) {
    follow_predecessors(schedule, t);
    for (std::size_t p : extra[t]) follow(p, t);
  }
}

void TaskOrder::follow_predecessors(const graph::Schedule& schedule, std::size_t task) {
  for (graph::TaskId p : schedule.tasks[task].predecessors) {
    check_edge(p.index, task, size_);
    follow(p.index, task);
  }
}

void TaskOrder::follow(std::size_t first, std::size_t task) {
  if (before(first, task)) return;
  const std::uint64_t* from = bits_.data() + row_of(first);
  std::uint64_t* into = bits_.data() + row_of(task);
  for (std::size_t w = 0; w <= first / 64; ++w) into[w] |= from[w];
  into[first / 64] |= std::uint64_t{1} << (first % 64);
}

// Nothing more follows from these: where a → b or b → c is one of them, c ≥ a + in_flight.
void TaskOrder::let_at_most(std::size_t in_flight) {
  if (in_flight == 0) {
    fail({.found = "0 tasks in flight", .expected = "at least 1", .where = "TaskOrder"});
  }
  for (std::size_t t = in_flight; t < size_; ++t) {
    const std::size_t ended = t - in_flight + 1;  // tasks 0 … t - in_flight
    std::uint64_t* row = bits_.data() + row_of(t);
    std::fill_n(row, ended / 64, ~std::uint64_t{0});
    if (ended % 64 != 0) row[ended / 64] |= (std::uint64_t{1} << (ended % 64)) - 1;
  }
}

std::vector<TaskEdge> necessary_edges(const graph::Schedule& schedule,
                                      std::vector<TaskEdge> edges) {
  // By the later task; for each the nearest earlier one first, for whatever it follows is implied.
  std::sort(edges.begin(), edges.end(), [](const TaskEdge& a, const TaskEdge& b) {
    return std::tie(a.after, b.before) < std::tie(b.after, a.before);
  });
  TaskOrder order(schedule.tasks.size());
  std::vector<TaskEdge> kept;
  auto edge = edges.begin();
  for (std::size_t t = 0; t < order.size(); ++t) {
    order.follow_predecessors(schedule, t);
    for (; edge != edges.end() && edge->after.index == t; ++edge) {
      check_edge(edge->before.index, t, order.size());
      if (order.before(edge->before.index, t)) continue;
      order.follow(edge->before.index, t);
      kept.push_back(*edge);
    }
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace arenite::plan
