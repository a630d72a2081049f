// Orders of a region's ops, and greedy ones that free bytes early.
#pragma once

#include <arenite/graph/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace arenite::graph {

/// The ops of a region that take time or bytes, numbered in their order. Others, as views, come
/// with what they are of.
struct OpSequence {
  /// `named`, by root storage: how often ops of the body name it, themselves or in their blocks.
  /// `tasks`, by op: whose ops change places among themselves; empty: those of a lane do.
  OpSequence(const Graph& graph, RegionId region, const std::vector<std::size_t>& named,
             const std::vector<std::size_t>& tasks);

  std::size_t size() const noexcept { return ops.size(); }
  /// The other way round in time.
  OpSequence reversed() const;
  /// All ops of the region with these in the given order, each other one as early as can be.
  std::vector<OpId> with_others(const Graph& graph, const std::vector<std::size_t>& order) const;

  std::vector<OpId> ops;
  std::vector<std::size_t> key;   ///< by op: who change places among themselves have one
  std::vector<std::size_t> lane;  ///< by key: those of one lane, or task, run one after another
  std::size_t keys = 0, lanes = 0;
  std::vector<std::vector<std::size_t>> before, after;  ///< by op: whom it follows, and who follows
  std::vector<std::vector<std::size_t>> storages;       ///< by op: those that die here, named by it
  std::vector<std::vector<std::size_t>> users;          ///< by storage: ops, ascending
  std::vector<std::int64_t> bytes;                      ///< by storage
  /// By op: of its storages, first what a result lives in and then what it may overwrite.
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> in_place;

 private:
  explicit OpSequence(RegionId region) : region_(region) {}
  void find_keys(const Graph& graph, const std::vector<std::size_t>& tasks);
  /// `own`: none for roots that do not die here; the roots that each op names.
  void find_storages(const Graph& graph, const std::vector<std::vector<std::size_t>>& roots_of,
                     const std::vector<std::size_t>& own);

  RegionId region_;
};

enum class Preference : std::uint8_t {
  frees_more,  ///< the op that frees most more bytes than it takes; none does: the first one
  takes_least  ///< the op that takes fewest bytes more than it frees
};

/// An order of the sequence, by number, in which each key has the places that it had, as far as
/// what its ops follow allows; of those of a key that may come next the preferred one does, the
/// first of equals. Empty where there is never a second one.
std::vector<std::size_t> list_schedule(const OpSequence& sequence, Preference preference);

/// The most bytes that are alive at a time in this order, estimated: results in place where they
/// may be, lanes side by side, each at its most.
std::int64_t live_bytes(const OpSequence& sequence, const std::vector<std::size_t>& order);

}  // namespace arenite::graph
