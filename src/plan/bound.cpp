// Lower bounds of the peak. The comment on lower_bounds() says why they are.

#include "src/plan/bound.hpp"

#include <arenite/plan/solve.hpp>

#include <algorithm>
#include <set>

#include "src/plan/alias.hpp"
#include "src/plan/bits.hpp"
#include "src/plan/instance.hpp"
#include "src/plan/max_flow.hpp"
#include "src/plan/topology.hpp"

namespace arenite::plan {
namespace {

/// What sizes are rounded to: not at all, or to an alignment of some items; ascending.
std::set<std::int64_t> roundings(const Instance& instance) {
  std::set<std::int64_t> result{std::min(instance.alignment, instance.granule)};
  for (const Item& item : instance.items) result.insert(item.alignment);
  return result;
}

/// What an item saves where nothing lies upon it.
std::int64_t saving(const Instance& instance, const Item& item, std::int64_t alignment) {
  return round_up(item.bytes, alignment) - instance.counted(item);
}

void keep(Live& best, Live live) {
  if (live.bytes > best.bytes) best = std::move(live);
}

/// What an item holds its bytes for, without a gap.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t item = 0;
};

/// The maximum over time of the rounded sizes less the largest saving, of the items aligned to
/// `alignment` or more.
Live max_live_at(const Instance& instance, const std::vector<Piece>& pieces,
                 std::int64_t alignment) {
  const auto& items = instance.items;
  std::vector<Piece> by_begin;
  for (const Piece& piece : pieces) {
    if (items[piece.item].alignment >= alignment) by_begin.push_back(piece);
  }
  std::vector<Piece> by_end = by_begin;
  std::sort(by_begin.begin(), by_begin.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  std::sort(by_end.begin(), by_end.end(),
            [](const Piece& a, const Piece& b) { return a.end < b.end; });

  Live best;
  std::int64_t best_time = 0;
  std::int64_t rounded = 0;
  std::multiset<std::int64_t> savings;  // those above 0
  std::size_t ended = 0;
  for (std::size_t b = 0; b < by_begin.size();) {
    const std::int64_t now = by_begin[b].begin;
    for (; b < by_begin.size() && by_begin[b].begin == now; ++b) {
      const Item& item = items[by_begin[b].item];
      rounded += round_up(item.bytes, alignment);
      if (const auto saved = saving(instance, item, alignment); saved > 0) savings.insert(saved);
    }
    for (; by_end[ended].end <= now; ++ended) {
      const Item& item = items[by_end[ended].item];
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
  for (const Piece& piece : pieces) {
    if (items[piece.item].alignment >= alignment && piece.begin <= best_time &&
        best_time < piece.end) {
      best.buffers.push_back(items[piece.item].buffer);
    }
  }
  return best;
}

/// A maximum-weight antichain of the pieces of items aligned to `alignment` or more, weighing their
/// rounded sizes; less the largest saving in it. It has one piece of an item at most, for the
/// others are before or after it.
///
/// In the network, what flows from a piece's upper node to a later piece's lower node joins two
/// parts of a chain; each piece gives and takes at most its weight, and flow may pass through
/// pieces. So weight that finds no partner must start a chain, and by Dilworth's theorem the least
/// total of chains that cover all weights, sum - flow, is the heaviest antichain. It consists of
/// the pieces whose upper node lies on the source's side of a minimum cut and whose lower node does
/// not.
class Antichain {
 public:
  /// `owners` are the pieces' items.
  Antichain(const Instance& instance, const std::vector<std::size_t>& owners,
            const Topology& topology, std::int64_t alignment)
      : instance_(instance),
        owners_(owners),
        topology_(topology),
        alignment_(alignment),
        network_(2 * owners.size() + 2),
        ranks_(owners.size()) {
    const std::size_t source = 2 * ranks_.size(), sink = source + 1;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Item& item = item_of(topology.buffer[r]);
      Rank& rank = ranks_[r];
      rank.passes = network_.add_arc(lower(r), upper(r), MaxFlow::unlimited);
      // Others weigh nothing, but still join chains.
      if (item.alignment >= alignment) rank.weight = rank.open = round_up(item.bytes, alignment);
      if (rank.weight == 0) continue;
      rank.from_source = network_.add_arc(source, upper(r), rank.weight);
      rank.to_sink = network_.add_arc(lower(r), sink, rank.weight);
    }
    visit_covers(topology, [&](std::size_t a, std::size_t b) {
      ranks_[a].covers.push_back({b, network_.add_arc(upper(a), lower(b), MaxFlow::unlimited)});
    });
    join_neighbours();
    network_.run(source, sink);
  }

  Live heaviest() const {
    const std::vector<bool> side = network_.source_side(2 * ranks_.size());
    std::vector<bool> chosen(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      chosen[topology_.buffer[r]] = side[upper(r)] && !side[lower(r)];
    Live result;
    std::int64_t largest_saving = 0;
    for (std::size_t piece = 0; piece < chosen.size(); ++piece) {
      const Item& item = item_of(piece);
      if (item.alignment < alignment_ || !chosen[piece]) continue;
      result.bytes += round_up(item.bytes, alignment_);
      largest_saving = std::max(largest_saving, saving(instance_, item, alignment_));
      result.buffers.push_back(item.buffer);
    }
    result.bytes -= largest_saving;
    return result;
  }

 private:
  struct Cover {
    std::size_t later;  // rank
    std::uint32_t arc;
  };
  struct Rank {
    std::uint32_t passes = 0, from_source = 0, to_sink = 0;  // arcs
    std::int64_t weight = 0, open = 0;                       // and what nobody before it has joined
    std::vector<Cover> covers;                               // ascending
  };

  static std::size_t upper(std::size_t rank) { return 2 * rank; }
  static std::size_t lower(std::size_t rank) { return 2 * rank + 1; }
  const Item& item_of(std::size_t piece) const { return instance_.items[owners_[piece]]; }

  /// Most of the flow: from the last piece to the first, each gives what it has to those that come
  /// next behind it. Where pieces live for intervals of one time that is all. Dinic's algorithm
  /// alone would take as many phases as chains are long.
  void join_neighbours() {
    Bits open(topology_.order.row(0).size(), 0);
    for (std::size_t a = ranks_.size(); a-- > 0;) {
      std::int64_t gives = ranks_[a].weight;
      const auto behind = topology_.order.row(a);
      for (std::size_t w = a / 64; w < open.size() && gives > 0; ++w) {
        for (std::uint64_t bits = behind[w] & open[w]; bits != 0 && gives > 0; bits &= bits - 1) {
          const std::size_t b = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
          const std::int64_t joined = join(a, b, std::min(gives, ranks_[b].open));
          gives -= joined;
          ranks_[b].open -= joined;
          if (ranks_[b].open == 0) clear_bit(open, b);
        }
      }
      if (ranks_[a].open > 0) set_bit(open, a);
    }
  }

  /// By some way from a to b, as much as it has room for.
  std::int64_t join(std::size_t a, std::size_t b, std::int64_t bytes) {
    way_ = {ranks_[a].from_source};
    while (a != b) {
      const std::vector<Cover>& covers = ranks_[a].covers;
      auto next = std::upper_bound(covers.begin(), covers.end(), b,
                                   [](std::size_t rank, const Cover& c) { return rank < c.later; });
      do {
        --next;  // b is behind a: one of these leads there
      } while (next->later != b && !topology_.order.before(next->later, b));
      way_.push_back(next->arc);
      a = next->later;
      way_.push_back(a == b ? ranks_[b].to_sink : ranks_[a].passes);
    }
    return network_.push(way_, bytes);
  }

  const Instance& instance_;
  const std::vector<std::size_t>& owners_;
  const Topology& topology_;
  const std::int64_t alignment_;
  MaxFlow network_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> way_;
};

/// Of an instance whose time is an order.
Live heaviest_antichain(const Problem& problem, const Instance& instance) {
  std::vector<std::size_t> owners, numbers;  // by piece: its item, and its number in the problem
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    const std::size_t buffer = instance.items[i].buffer;
    for (std::size_t p = problem.first_piece(buffer); p <= problem.last_piece(buffer); ++p) {
      owners.push_back(i);
      numbers.push_back(p);
    }
  }
  Precedence order(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      if (problem.precedence()->before(numbers[i], numbers[j])) order.set_before(i, j);
    }
  }
  const Topology topology(order);
  Live best;
  for (const auto alignment : roundings(instance)) {
    keep(best, Antichain(instance, owners, topology, alignment).heaviest());
  }
  return best;
}

}  // namespace

Live max_live(const Instance& instance) {
  std::vector<Piece> parts;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    for (const auto [begin, end] : pieces(instance.items[i])) parts.push_back({begin, end, i});
  }
  Live best;
  for (const auto alignment : roundings(instance)) {
    keep(best, max_live_at(instance, parts, alignment));
  }
  return best;
}

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
    Live live = instance.line ? max_live(instance) : heaviest_antichain(problem, instance);
    std::int64_t bound = live.bytes;
    for (const Item& item : instance.items) {
      if (item.fixed >= 0) bound = std::max(bound, item.fixed + item.bytes);
    }
    bound = round_up(bound, instance.granule);
    bounds.push_back({space, live.bytes, bound, std::move(live.buffers)});
  }
  return bounds;
}

}  // namespace arenite::plan
