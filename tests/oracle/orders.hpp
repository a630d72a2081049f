// Legal orders of a random program's ops: those that the schedule and the plan's reuse edges allow.
//
//   const Timeline timeline(program);
//   execute(program, kernels, arrange(timeline, Policy::latest_first, 1), Poison::dead);
//
// An edge that the program lacks is one that these orders do not keep.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/oracle/executor.hpp"

namespace arenite::oracle {

/// All ops of all steps, and which have to end before which may begin.
class Timeline {
 public:
  explicit Timeline(const RandomProgram& program);

  /// Step by step, in program order: a legal order of a graph, not of every schedule.
  const std::vector<Event>& events() const noexcept { return events_; }
  /// Direct predecessors and successors of an event; numbers of `events`.
  const std::vector<std::size_t>& before(std::size_t event) const { return before_.at(event); }
  const std::vector<std::size_t>& after(std::size_t event) const { return after_.at(event); }
  std::size_t find(std::size_t step, graph::OpId op) const { return number_.at(step).at(op.index); }

 private:
  void add_step(const RandomProgram& program, std::size_t step);
  void join_step(const RandomProgram& program, std::size_t step);
  void follow(std::size_t event, std::size_t first);
  /// Ops of the step that nothing in it follows.
  std::vector<std::size_t> ends_of(const RandomProgram& program, std::size_t step) const;

  std::vector<Event> events_;
  std::vector<std::vector<std::size_t>> before_, after_;
  std::vector<std::vector<std::size_t>> number_;  // [step][op]: of its event
};

/// Which of the ops that may run is the next.
enum class Policy : std::uint8_t {
  program_order,  ///< the earliest in the program
  random,
  depth_first,   ///< one that had to wait for the last one
  newest_first,  ///< the one that became ready last
  oldest_first,  ///< the one that became ready first: tasks take turns, op by op
  latest_first,  ///< the last in the program
};

std::vector<Event> arrange(const Timeline& timeline, Policy policy, std::uint32_t seed);

/// The given events in this order, each as soon as what it has to follow has run, and the rest in
/// program order. An event that another one had to follow has run already: it is left out.
std::vector<Event> lead_with(const Timeline& timeline, std::span<const std::size_t> events);

}  // namespace arenite::oracle
