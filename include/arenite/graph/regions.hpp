// The operators that hold blocks of ops: `if` and `loop`.
//
//   $5 = if($1) {                                 # condition: one integer, 0 is false
//     $6 = relu($2);
//     yield $6;
//   } else {
//     yield $2;
//   }
//   $7 = loop($3, _, $5, max_trips=8) ($8, $9) {  # trips, condition, first values
//     $10 = add($9, $2);                          # $8 counts the trips from 0, $9 is carried
//     yield $10;
//   }
//
// if(condition): runs one of its blocks, which read whatever is visible outside and yield a value
// for each result. A result that one of them leaves out (`_`) exists only where that block ran:
// blocks of the same side of another `if` on the same condition may read it, nobody else may. This
// is how a gradient finds what the taken branch saved.
//
// loop(trips, condition, first, …, max_trips=N): repeats its block, at most `trips` times (one
// int64; absent: N) and as long as the condition is not 0 (absent: for ever), never more than N
// times. The block's parameters are the number of the trip and the carried values; it yields the
// next condition, if there is one, and the next carried values, all of which change at once: what
// it yields may be a parameter, as when two values swap. The results are the last carried values.
//
// Both run as one task: a region is a list of ops that a worker runs one after another.
#pragma once

#include <arenite/graph/operator.hpp>

#include <vector>

namespace arenite::graph {

/// Blocks in blocks in …: no deeper than this, so that whoever walks a graph may recurse.
inline constexpr std::size_t max_region_depth = 64;
/// The largest `max_trips`.
inline constexpr std::int64_t max_loop_trips = std::int64_t{1} << 31;

/// Adds `if` and `loop`.
void add_region_operators(OperatorTable& table);

/// A value that a region op takes over when one of its blocks ends, or before a loop begins:
/// `into` becomes equal to `from`.
struct Handover {
  ValueId from, into;
  /// Another one at the same end overwrites `from`: its bytes are set aside before, in the op's
  /// workspace.
  bool staged = false;

  friend bool operator==(const Handover&, const Handover&) = default;
};

/// What happens at once at the end of a region: an `if` hands yielded values to its results, a loop
/// to its parameters. Those that share their bytes already are left out.
std::vector<Handover> handovers_at_end(const Graph& graph, const Op& op, std::size_t region);
/// What happens before a loop's first trip (first values to parameters) and after the last one
/// (parameters to results). Empty for others.
std::vector<Handover> handovers_at_entry(const Graph& graph, const Op& op);
std::vector<Handover> handovers_at_exit(const Graph& graph, const Op& op);

/// Bytes of workspace that a region op needs for values to be set aside, as when two carried values
/// swap. Each value's are rounded up to default_alignment.
std::int64_t staging_bytes(const Graph& graph, const Op& op);

/// Lets values that are handed over live in one place where nothing stands against it: carried
/// values with results and first values, and what blocks yield with where it goes. Gives a
/// workspace to the ops that have to set values aside. `in_place` calls it. Returns how many were
/// merged.
int join_handovers(Graph& graph);

/// Lets what one block of an `if` leaves behind, and the other leaves out, live where the other's
/// lives: only one of the blocks runs. Those of one size first, for they cost neither block a byte;
/// of the others the larger counts, in both. After `join_handovers`; `in_place` calls it. Returns
/// how many were merged.
int join_sides(Graph& graph);

/// All ops with those in regions, in program order: an op before those that it holds.
std::vector<OpId> nested_ops(const Graph& graph);

/// True for results of an `if` that one of its blocks leaves out.
bool is_partial(const Graph& graph, ValueId value);
/// The block that yields a partial result.
std::size_t side_of(const Graph& graph, ValueId partial);

}  // namespace arenite::graph
