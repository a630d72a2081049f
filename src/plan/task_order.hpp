// Which task happens before which: the transitive closure of edges that all lead to higher numbers.
#pragma once

#include <arenite/graph/passes.hpp>
#include <arenite/plan/step_plan.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace arenite::plan {

/// A row of bits for each task, up to its own: its ancestors. Takes n²/16 bytes.
class TaskOrder {
 public:
  /// The schedule's edges and `more`, in one sweep. Throws Error on an edge that does not lead to a
  /// higher number.
  explicit TaskOrder(const graph::Schedule& schedule, std::span<const TaskEdge> more = {});

  std::size_t size() const noexcept { return size_; }
  /// True when a path leads from a to b.
  bool before(std::size_t a, std::size_t b) const noexcept {
    return a < b && (bits_[row_of(b) + a / 64] >> (a % 64) & 1) != 0;
  }
  /// Bit a is before(a, task), up to the word of the task itself.
  std::span<const std::uint64_t> ancestors(std::size_t task) const noexcept {
    return {bits_.data() + row_of(task), task / 64 + 1};
  }
  /// Adds a → b for every b ≥ a + in_flight. Throws Error below 1. O(n²/64).
  void let_at_most(std::size_t in_flight);

 private:
  friend std::vector<TaskEdge> necessary_edges(const graph::Schedule&, std::vector<TaskEdge>);

  explicit TaskOrder(std::size_t size);
  /// Where a task's row begins: each has a word more than that of 64 tasks before.
  static std::size_t row_of(std::size_t task) noexcept {
    const std::size_t words = task / 64;
    return words * (words + 1) * 32 + task % 64 * (words + 1);
  }
  void follow_predecessors(const graph::Schedule& schedule, std::size_t task);
  /// `task` and its row follow `first`, whose row is final.
  void follow(std::size_t first, std::size_t task);

  std::size_t size_ = 0;
  std::vector<std::uint64_t> bits_;
};

/// Those of the edges that no path of other edges implies, the schedule's included; sorted.
std::vector<TaskEdge> necessary_edges(const graph::Schedule& schedule, std::vector<TaskEdge> edges);

}  // namespace arenite::plan
