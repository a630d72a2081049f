#include <arenite/graph/passes.hpp>

#include "src/base/words.hpp"
#include "src/graph/passes/list_schedule.hpp"
#include "src/graph/passes/sharing.hpp"
#include "src/graph/passes/verify_pass.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace arenite::graph {
namespace {

using Order = std::vector<std::size_t>;

/// Ops of all graphs that may be planned: counted, so that the order is the same on every machine.
constexpr std::size_t budget = std::size_t{1} << 14;
/// Blocks times ops of a graph whose blocks are all looked at: each takes time in the graph's size.
constexpr std::size_t most_looked_at = std::size_t{1} << 22;
/// What is less than this part of the bytes is not worth moving ops for.
constexpr std::int64_t worth = 128;
/// By what share bytes fall, over that by which the critical path may then grow.
constexpr double bytes_for_time = 6;

bool saves(std::int64_t bytes, std::int64_t than) { return bytes < than - than / worth; }

struct Candidate {
  Order order;
  std::int64_t live = 0;
};

/// Greedy orders that seem to save bytes, from the first op to the last and the other way round,
/// where ops wait whose results are needed late; those with the fewest bytes first.
std::vector<Candidate> candidates(const OpSequence& sequence) {
  std::vector<Candidate> found;
  Order order(sequence.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t given = 0;
  std::optional<OpSequence> reversed;
  for (const Preference preference : {Preference::frees_more, Preference::takes_least}) {
    for (const bool backwards : {false, true}) {
      Order greedy = list_schedule(backwards ? *reversed : sequence, preference);
      if (greedy.empty() && !reversed) return found;  // no op has a choice
      if (greedy.empty()) continue;
      if (!reversed) {
        reversed = sequence.reversed();
        given = live_bytes(sequence, order);
      }
      if (backwards) {
        for (std::size_t& op : greedy) op = sequence.size() - 1 - op;
        std::ranges::reverse(greedy);
      }
      const std::int64_t live = live_bytes(sequence, greedy);
      if (saves(live, given)) found.push_back({std::move(greedy), live});
    }
  }
  // The first of those about as good: it moves the fewest ops.
  std::ranges::stable_sort(found, {},
                           [&](const Candidate& c) { return c.live / (given / worth + 1); });
  return found;
}

/// The fewest ops without which the others of their key stand as before: all but a longest
/// ascending subsequence.
std::vector<bool> moved(const OpSequence& sequence, const Order& order) {
  std::vector<bool> result(order.size(), true);
  std::vector<std::size_t> previous(order.size(), order.size());
  std::vector<std::vector<std::size_t>> ends(sequence.keys);  // of the shortest of each length
  for (std::size_t op : order) {
    auto& tails = ends[sequence.key[op]];
    const auto at = std::ranges::lower_bound(tails, op);
    if (at != tails.begin()) previous[op] = *std::prev(at);
    if (at == tails.end()) {
      tails.push_back(op);
    } else {
      *at = op;
    }
  }
  for (const auto& tails : ends) {
    for (std::size_t op = tails.back(); op < order.size(); op = previous[op]) result[op] = false;
  }
  return result;
}

class Orderer {
 public:
  Orderer(Graph& graph, const std::function<PlannedBytes(const Graph&)>& planned,
          const std::function<Schedule(const Graph&)>& free_tasks, Remarks* remarks)
      : graph_(graph),
        planned_(planned),
        free_tasks_(free_tasks),
        remarks_(remarks),
        named_(graph.storage_count(), 0) {
    for (OpId id : graph[Graph::body].ops)
      for_each_named(graph, id, [&](ValueId value) { ++named_[graph.root(value).index]; });
  }

  int run() {
    int moved = 0;
    for (std::size_t i = 0; i < graph_.region_count() && i * graph_.op_count() < most_looked_at;
         ++i) {
      const RegionId region(i);
      if (graph_[region].ops.size() < 2) continue;
      if (would_take_too_long()) {
        leave_as_too_long(region);
        break;
      }
      moved += improve(region);
    }
    if (moved > 0) verify_pass(graph_);
    return moved;
  }

 private:
  int improve(RegionId region) {
    const OpSequence sequence(graph_, region, named_, tasks_of(region));
    const std::vector<Candidate> found = candidates(sequence);
    if (found.empty()) return 0;
    for (const auto& [order, live] : found) {
      if (would_take_too_long()) return leave_as_too_long(region);
      if (!given_) given_ = planned(graph_[region].ops, region);
      std::vector<OpId> ops = sequence.with_others(graph_, order);
      PlannedBytes plan = planned(ops, region);
      if (!is_better(plan)) continue;
      const std::vector<bool> moves = moved(sequence, order);
      if (remarks_ != nullptr) explain(sequence, order, moves, plan);
      graph_[region].ops = std::move(ops);
      given_ = std::move(plan);
      return static_cast<int>(std::ranges::count(moves, true));
    }
    return leave(region, "of " + counted(static_cast<std::int64_t>(found.size()), "other order") +
                             " none saves bytes without taking longer");
  }

  bool would_take_too_long() const {
    return planned_ops_ + (given_ ? 1 : 2) * graph_.op_count() > budget;
  }

  int leave_as_too_long(RegionId region) const {
    return leave(region, "planning more orders would take too long");
  }

  /// By op of the body, where tasks are free; else empty.
  std::vector<std::size_t> tasks_of(RegionId region) const {
    if (region != Graph::body || !free_tasks_) return {};
    const Schedule schedule = free_tasks_(graph_);
    std::vector<std::size_t> tasks(graph_.op_count(), 0);
    for (std::size_t t = 0; t < schedule.tasks.size(); ++t) {
      for (OpId id : schedule.tasks[t].ops) tasks[id.index] = t;
    }
    return tasks;
  }

  /// With a region's ops in this order.
  PlannedBytes planned(std::vector<OpId> ops, RegionId region) {
    planned_ops_ += graph_.op_count();
    graph_[region].ops.swap(ops);
    PlannedBytes result = planned_(graph_);
    graph_[region].ops.swap(ops);
    return result;
  }

  /// Less than any plan of the given order needs, in no block more, and no time that the bytes are
  /// not worth.
  bool is_better(const PlannedBytes& plan) const {
    const std::vector<std::int64_t>& least = given_->least;
    const std::int64_t given = std::accumulate(least.begin(), least.end(), std::int64_t{0});
    const double saved = 1 - static_cast<double>(plan.sum()) / static_cast<double>(given);
    const double longer = std::max(1.0 / worth, saved / bytes_for_time);
    return saves(plan.sum(), given) &&
           std::ranges::equal(plan.bytes, least, std::ranges::less_equal()) &&
           plan.microseconds <= given_->microseconds * (1 + longer);
  }

  void explain(const OpSequence& sequence, const Order& order, const std::vector<bool>& moves,
               const PlannedBytes& plan) const {
    remarks_->done.push_back(
        {digits(given_->sum()) + " bytes by first fit, as given", digits(plan.sum())});
    for (std::size_t at = 0; at < order.size(); ++at) {
      const std::size_t op = order[at];
      if (!moves[op]) continue;
      // The nearest neighbour that it was on the other side of.
      const auto stays = [&](std::size_t other) {
        return !moves[other] && sequence.key[other] == sequence.key[op];
      };
      const auto behind =
          std::find_if(order.begin() + static_cast<std::ptrdiff_t>(at), order.end(), stays);
      const bool earlier = behind != order.end() && *behind < op;
      const auto other = earlier ? *behind
                                 : *std::find_if(order.rend() - static_cast<std::ptrdiff_t>(at),
                                                 order.rend(), stays);
      remarks_->done.push_back(
          {describe(graph_, sequence.ops[op]),
           (earlier ? "before " : "behind ") + describe(graph_, sequence.ops[other])});
    }
  }

  int leave(RegionId region, std::string why) const {
    if (remarks_ == nullptr) return 0;
    remarks_->left.push_back({region == Graph::body
                                  ? "the step's ops"
                                  : "the block with " + describe(graph_, graph_[region].ops[0]),
                              std::move(why)});
    return 0;
  }

  Graph& graph_;
  const std::function<PlannedBytes(const Graph&)>& planned_;
  const std::function<Schedule(const Graph&)>& free_tasks_;
  Remarks* remarks_;
  std::vector<std::size_t> named_;     // by root storage: how often ops name it
  std::optional<PlannedBytes> given_;  // of the graph as it is now
  std::size_t planned_ops_ = 0;
};

}  // namespace

std::int64_t PlannedBytes::sum() const noexcept {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

int order(Graph& graph, const std::function<PlannedBytes(const Graph&)>& planned,
          const std::function<Schedule(const Graph&)>& free_tasks, Remarks* remarks) {
  return Orderer(graph, planned, free_tasks, remarks).run();
}

}  // namespace arenite::graph
