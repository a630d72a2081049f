#include <arenite/plan/solve.hpp>

#include <arenite/error.hpp>

#include <algorithm>
#include <chrono>

#include "src/plan/alias.hpp"
#include "src/plan/instance.hpp"
#include "src/plan/strategies/strategy.hpp"
#include "src/plan/text.hpp"
#include "src/plan/topology.hpp"

namespace arenite::plan {
namespace {

struct Attempt {
  Packing packing;
  std::int64_t peak = 0;
  std::string_view strategy;
};

std::int64_t work_of(Effort effort) {
  return effort == Effort::fast     ? 5'000'000
         : effort == Effort::normal ? 500'000'000
                                    : 30'000'000'000;
}

std::int64_t first_dive_of(Effort effort) { return effort == Effort::fast ? 0 : 8'000'000'000; }

/// The lowest peak of the strategies asked for, the earlier one of equals, and the best bound.
Attempt best_attempt(const std::vector<const Strategy*>& chosen, const Instance& instance,
                     Limits limits) {
  Attempt best;
  for (const Strategy* strategy : chosen) {
    limits.incumbent = best.strategy.empty() ? nullptr : &best.packing.offsets;
    Packing packing = strategy->pack(instance, limits);
    limits.lower_bound = std::max(limits.lower_bound, packing.lower_bound);
    const std::int64_t peak = peak_of(instance, packing.offsets);
    if (best.strategy.empty() || peak < best.peak) {
      best = {std::move(packing), peak, strategy->name};
    }
    if (best.peak <= limits.lower_bound) break;
  }
  best.packing.lower_bound = limits.lower_bound;
  return best;
}

std::vector<const Strategy*> choose(const std::string& name) {
  std::vector<const Strategy*> chosen;
  std::string known = "auto";
  for (const Strategy& strategy : all_strategies()) {
    known += ", " + std::string(strategy.name);
    if (name == strategy.name || (name == "auto" && strategy.in_auto)) {
      chosen.push_back(&strategy);
    }
  }
  if (chosen.empty()) {
    fail({.found = "strategy '" + name + "'",
          .expected = "one of " + known,
          .where = "plan::solve"});
  }
  return chosen;
}

/// Lifetimes that follow a precedence: a buffer begins at the length of the longest chain before
/// it, and ends where the first one after it begins.
std::vector<Lifetime> lifetimes_of(const Precedence& order) {
  const Topology topology(order);
  const std::size_t n = order.size();
  std::vector<std::int64_t> depth(n, 0);
  std::vector<std::pair<std::size_t, std::size_t>> covers;
  visit_covers(topology, [&](std::size_t a, std::size_t b) { covers.emplace_back(a, b); });
  // Pairs come by descending first rank: read from the back, all that comes before a rank has
  // been seen when the rank itself comes first.
  for (auto it = covers.rbegin(); it != covers.rend(); ++it) {
    depth[it->second] = std::max(depth[it->second], depth[it->first] + 1);
  }
  const std::int64_t last = n == 0 ? 0 : *std::max_element(depth.begin(), depth.end()) + 1;
  std::vector<std::int64_t> end(n, last);
  for (const auto& [a, b] : covers) end[a] = std::min(end[a], depth[b]);

  std::vector<Lifetime> lifetimes(n);
  for (std::size_t r = 0; r < n; ++r) lifetimes[topology.buffer[r]] = {depth[r], end[r]};
  return lifetimes;
}

void sum_up(Plan& plan) {
  for (const SpacePlan& space : plan.spaces) {
    plan.peak += space.peak;
    plan.max_live += space.max_live;
    plan.lower_bound += space.lower_bound;
    plan.optimal = plan.optimal && space.optimal;
  }
  plan.strategy = strategies_text(plan.spaces);
}

/// Where the problem has none to draw.
void give_lifetimes(const Problem& problem, Plan& plan) {
  if (problem.precedence() == nullptr || problem.size() == 0 || problem[0].lifetime != Lifetime{}) {
    return;
  }
  const std::vector<Lifetime> lifetimes = lifetimes_of(*problem.precedence());
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) plan.buffers[i].lifetime = lifetimes[i];
}

/// Plans alias groups as buffers, and puts each of a group's buffers at its place.
Plan solve_groups(const Problem& problem, const Options& options) {
  const AliasGroups groups(problem.buffers());
  Plan plan = solve(merge(problem, groups), options);
  const std::vector<std::int64_t> offsets = std::move(plan.offsets);
  plan.buffers = problem.buffers();
  plan.offsets.assign(problem.size(), 0);
  for (std::size_t g = 0; g < groups.members.size(); ++g) {
    for (const std::size_t i : groups.members[g]) plan.offsets[i] = offsets[g];
  }
  give_lifetimes(problem, plan);
  plan.reuse = find_reuse(plan);
  return plan;
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

Plan solve(const Problem& problem, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<const Strategy*> chosen = choose(options.strategy);
  if (has_aliases(problem.buffers())) {
    problem.validate();
    Plan plan = solve_groups(problem, options);
    plan.milliseconds = since(start);
    return plan;
  }
  const std::vector<LowerBound> bounds = lower_bounds(problem);

  Plan plan;
  plan.buffers = problem.buffers();
  plan.offsets.resize(problem.size(), 0);
  for (std::size_t i = 0; i < problem.size(); ++i) {
    plan.offsets[i] = problem[i].offset.value_or(0);
  }
  const std::vector<SpaceInstance> spaces = split_by_space(problem);
  for (std::size_t s = 0; s < spaces.size(); ++s) {
    const auto& [space, instance] = spaces[s];
    const LowerBound& bound = bounds[s];
    const std::int64_t capacity = std::min(options.capacity, space.capacity);
    // No search for what cannot be.
    const Effort effort = bound.lower_bound > capacity ? Effort::fast : options.effort;
    const auto [packing, peak, strategy] =
        best_attempt(chosen, instance, {bound.lower_bound, work_of(effort), first_dive_of(effort)});
    for (std::size_t i = 0; i < instance.items.size(); ++i) {
      plan.offsets[instance.items[i].buffer] = packing.offsets[i];
    }
    const Proof proof = packing.lower_bound > bound.lower_bound ? Proof::search
                        : bound.lower_bound > bound.max_live    ? Proof::fixed
                                                                : Proof::live;
    plan.spaces.push_back({.space = space,
                           .peak = peak,
                           .max_live = bound.max_live,
                           .lower_bound = packing.lower_bound,
                           .proof = proof,
                           .optimal = peak == packing.lower_bound,
                           .strategy = std::string(strategy)});
  }
  sum_up(plan);
  if (const auto shortfall = find_shortfall(problem, plan, options.capacity)) {
    fail(describe(problem, *shortfall));
  }
  if (plan.strategy.empty()) plan.strategy = options.strategy;

  give_lifetimes(problem, plan);
  plan.reuse = find_reuse(plan);
  plan.milliseconds = since(start);
  return plan;
}

std::optional<Shortfall> find_shortfall(const Problem& problem, const Plan& plan,
                                        std::int64_t capacity) {
  for (const SpacePlan& space : plan.spaces) {
    const std::int64_t allowed = std::min(capacity, space.space.capacity);
    if (space.peak <= allowed) continue;
    const bool proved = space.lower_bound > allowed;
    Shortfall result{space.space, allowed, proved ? space.lower_bound : space.peak, proved, {}};
    const auto bounds = lower_bounds(problem);
    const auto bound = std::find_if(bounds.begin(), bounds.end(),
                                    [&](const LowerBound& b) { return b.space == space.space; });
    if (bound != bounds.end()) result.buffers = bound->witness;
    std::stable_sort(
        result.buffers.begin(), result.buffers.end(),
        [&](std::size_t a, std::size_t b) { return problem[a].bytes > problem[b].bytes; });
    return result;
  }
  return std::nullopt;
}

ErrorText describe(const Problem& problem, const Shortfall& shortfall) {
  std::string names;
  constexpr std::size_t shown = 6;
  for (std::size_t i = 0; i < std::min(shown, shortfall.buffers.size()); ++i) {
    names += (i == 0 ? "" : ", ") + quoted(problem[shortfall.buffers[i]]);
  }
  if (shortfall.buffers.size() > shown) {
    names += " and " + std::to_string(shortfall.buffers.size() - shown) + " more";
  }
  return {.found = std::string(shortfall.verdict()) +
                   (shortfall.proved ? ": at least " : ": the best plan takes ") +
                   digits(shortfall.needed) + " bytes",
          .expected = "at most the capacity of " + digits(shortfall.capacity) + " bytes",
          .where = "space " + to_string(shortfall.space),
          .hint = names.empty() ? "" : "alive together: " + names};
}

std::vector<StrategyInfo> strategies() {
  std::vector<StrategyInfo> infos;
  for (const Strategy& strategy : all_strategies()) {
    infos.push_back({strategy.name, strategy.summary});
  }
  return infos;
}

}  // namespace arenite::plan
