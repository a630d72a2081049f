// Lower bounds of the peak. The comment on lower_bounds() says why the rounding is sound.

#include <arenite/plan/solve.hpp>

#include <algorithm>
#include <set>

#include "src/plan/alias.hpp"
#include "src/plan/instance.hpp"
#include "src/plan/max_flow.hpp"
#include "src/plan/topology.hpp"

namespace arenite::plan {
namespace {

struct Live {
  std::int64_t bytes = 0;
  std::vector<std::size_t> buffers;  // behind it
};

/// Distinct alignments of the items, ascending.
std::set<std::int64_t> alignments(const Instance& instance) {
  std::set<std::int64_t> result;
  for (const Item& item : instance.items) result.insert(item.alignment);
  return result;
}

/// What an item saves at the top of the space, where it is padded to the granule only.
std::int64_t saving(const Instance& instance, const Item& item, std::int64_t alignment) {
  return round_up(item.bytes, alignment) - round_up(item.bytes, instance.granule);
}

/// The maximum over time of the rounded sizes less the largest saving, of the items aligned to
/// `alignment` or more.
Live max_live_at(const Instance& instance, std::int64_t alignment) {
  const auto& items = instance.items;
  std::vector<std::size_t> by_begin;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].alignment >= alignment) by_begin.push_back(i);
  }
  std::vector<std::size_t> by_end = by_begin;
  std::sort(by_begin.begin(), by_begin.end(),
            [&](std::size_t a, std::size_t b) { return items[a].begin < items[b].begin; });
  std::sort(by_end.begin(), by_end.end(),
            [&](std::size_t a, std::size_t b) { return items[a].end < items[b].end; });

  Live best;
  std::int64_t best_time = 0;
  std::int64_t rounded = 0;
  std::multiset<std::int64_t> savings;  // those above 0
  std::size_t ended = 0;
  for (std::size_t b = 0; b < by_begin.size();) {
    const std::int64_t now = items[by_begin[b]].begin;
    for (; b < by_begin.size() && items[by_begin[b]].begin == now; ++b) {
      const Item& item = items[by_begin[b]];
      rounded += round_up(item.bytes, alignment);
      if (const auto saved = saving(instance, item, alignment); saved > 0) savings.insert(saved);
    }
    for (; items[by_end[ended]].end <= now; ++ended) {
      const Item& item = items[by_end[ended]];
      rounded -= round_up(item.bytes, alignment);
      if (const auto saved = saving(instance, item, alignment); saved > 0)
        savings.erase(savings.find(saved));
    }
    const std::int64_t live = rounded - (savings.empty() ? 0 : *savings.rbegin());
    if (live > best.bytes) {
      best.bytes = live;
      best_time = now;
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].alignment >= alignment && items[i].begin <= best_time &&
        best_time < items[i].end) {
      best.buffers.push_back(items[i].buffer);
    }
  }
  return best;
}

/// A maximum-weight antichain of the items aligned to `alignment` or more, weighing their rounded
/// sizes; less the largest saving in it.
///
/// In the network, what flows from an item's upper node to a later item's lower node joins two
/// pieces of chain; each item gives and takes at most its weight, and flow may pass through items.
/// So weight that finds no partner must start a chain, and by Dilworth's theorem the least total of
/// chains that cover all weights, sum - flow, is the heaviest antichain. It consists of the items
/// whose upper node lies on the source's side of a minimum cut and whose lower node does not.
Live antichain_at(const Instance& instance, const Topology& topology, std::int64_t alignment) {
  const std::size_t n = instance.items.size();
  const std::size_t source = 2 * n;
  const std::size_t sink = source + 1;
  const auto upper = [](std::size_t i) { return 2 * i; };
  const auto lower = [](std::size_t i) { return 2 * i + 1; };

  MaxFlow network(2 * n + 2);
  for (std::size_t i = 0; i < n; ++i) {
    const Item& item = instance.items[i];
    network.add_arc(lower(i), upper(i), MaxFlow::unlimited);
    if (item.alignment < alignment) continue;  // weighs nothing, but still joins chains
    network.add_arc(source, upper(i), round_up(item.bytes, alignment));
    network.add_arc(lower(i), sink, round_up(item.bytes, alignment));
  }
  visit_covers(topology, [&](std::size_t a, std::size_t b) {
    network.add_arc(upper(topology.buffer[a]), lower(topology.buffer[b]), MaxFlow::unlimited);
  });
  network.run(source, sink);

  const std::vector<bool> side = network.source_side(source);
  Live result;
  std::int64_t largest_saving = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Item& item = instance.items[i];
    if (item.alignment < alignment || !side[upper(i)] || side[lower(i)]) continue;
    result.bytes += round_up(item.bytes, alignment);
    largest_saving = std::max(largest_saving, saving(instance, item, alignment));
    result.buffers.push_back(item.buffer);
  }
  result.bytes -= largest_saving;
  return result;
}

/// The order of the instance's items alone.
Precedence order_of_items(const Problem& problem, const Instance& instance) {
  const std::size_t n = instance.items.size();
  Precedence order(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (problem.before(instance.items[i].buffer, instance.items[j].buffer)) {
        order.set_before(i, j);
      }
    }
  }
  return order;
}

Live max_live(const Problem& problem, const Instance& instance) {
  Live best;
  const auto keep = [&](Live live) {
    if (live.bytes > best.bytes) best = std::move(live);
  };
  if (problem.precedence() == nullptr) {
    for (const auto alignment : alignments(instance)) keep(max_live_at(instance, alignment));
  } else {
    const Topology topology(order_of_items(problem, instance));
    for (const auto alignment : alignments(instance)) {
      keep(antichain_at(instance, topology, alignment));
    }
  }
  return best;
}

}  // namespace

std::vector<LowerBound> lower_bounds(const Problem& problem) {
  problem.validate();
  if (has_aliases(problem.buffers())) {
    const AliasGroups groups(problem.buffers());
    std::vector<LowerBound> bounds = lower_bounds(merge(problem, groups));
    for (LowerBound& bound : bounds) {
      for (std::size_t& g : bound.witness) g = groups.first[g];
    }
    return bounds;
  }
  std::vector<LowerBound> bounds;
  for (const auto& [space, instance] : split_by_space(problem)) {
    Live live = max_live(problem, instance);
    std::int64_t bound = live.bytes;
    for (const Item& item : instance.items) {
      if (item.fixed >= 0)
        bound = std::max(bound, round_up(item.fixed + item.bytes, instance.granule));
    }
    bounds.push_back({space, live.bytes, bound, std::move(live.buffers)});
  }
  return bounds;
}

}  // namespace arenite::plan
