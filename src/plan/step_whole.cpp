#include <arenite/error.hpp>
#include <arenite/plan/step_plan.hpp>

#include <algorithm>
#include <set>

#include "src/plan/text.hpp"

namespace arenite::plan {
namespace {

void refuse_shared_space(const Space& space) {
  fail({.found = "two blocks in space " + to_string(space),
        .expected = "one in each space, as in the layout 'overlay'",
        .where = "a step as one problem"});
}

void append(Plan& whole, const Plan& part) {
  const std::size_t first = whole.buffers.size();
  whole.buffers.insert(whole.buffers.end(), part.buffers.begin(), part.buffers.end());
  whole.offsets.insert(whole.offsets.end(), part.offsets.begin(), part.offsets.end());
  whole.spaces.insert(whole.spaces.end(), part.spaces.begin(), part.spaces.end());
  whole.peak += part.peak;
  whole.max_live += part.max_live;
  whole.lower_bound += part.lower_bound;
  whole.optimal = whole.optimal && part.optimal;
  whole.milliseconds += part.milliseconds;
  // Later buffers have higher numbers: the list stays sorted.
  for (const Reuse& reuse : part.reuse)
    whole.reuse.push_back({first + reuse.previous, first + reuse.next});
}

}  // namespace

Problem whole_problem(std::span<const StepProblem> problems) {
  if (problems.size() == 1) return problems.front().problem;
  Problem whole;
  whole.set_granule(default_alignment);
  std::set<Space> spaces;
  for (const StepProblem& step : problems) {
    if (!spaces.insert(step.space).second) refuse_shared_space(step.space);
    for (const Buffer& buffer : step.problem.buffers()) whole.add(buffer);
  }
  // Buffers of different spaces need no order: they never share bytes.
  Precedence order(whole.piece_count());
  std::size_t first = 0;
  for (const StepProblem& step : problems) {
    const std::size_t size = step.problem.piece_count();
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) {
        if (step.problem.precedence()->before(i, j)) order.set_before(first + i, first + j);
      }
    }
    first += size;
  }
  whole.set_precedence(std::move(order));
  return whole;
}

Plan whole_plan(const StepPlan& plan) {
  Plan whole;
  for (const Plan& packing : plan.packings) append(whole, packing);
  std::sort(whole.spaces.begin(), whole.spaces.end(),
            [](const SpacePlan& a, const SpacePlan& b) { return a.space < b.space; });
  for (std::size_t s = 0; s < whole.spaces.size(); ++s) {
    const SpacePlan& space = whole.spaces[s];
    if (s > 0 && whole.spaces[s - 1].space == space.space) refuse_shared_space(space.space);
  }
  whole.strategy = strategies_text(whole.spaces);
  return whole;
}

}  // namespace arenite::plan
