// When an op needs the bytes of each storage that it touches.
//
// An op without regions touches everything at once. One that holds regions runs on one worker, step
// by step: it begins, runs the ops of its regions in order, with a step for what each region hands
// over at its end, and ends. A storage is live at a step if the step touches it, or if a later one
// that may follow reads what it holds now. So
//  - blocks that exclude each other are different steps, and what one of them reads last is dead in
//    the other one
//  - a result of an `if` is live from where each block writes it
//  - a value from outside that a loop's block reads is live during the whole loop, what a trip
//  makes
//    for itself only as long as the trip needs it, and a carried value until it has a successor
//
// Backward data-flow on storages, so that views and values that share bytes count as one, to a
// fixed point for loops (Aho, Lam, Sethi, Ullman: Compilers, 9.2.5).
//
// Pure functions of a verified graph: safe from any thread.
#pragma once

#include <arenite/graph/graph.hpp>

#include <cstddef>
#include <vector>

namespace arenite::graph {

/// A storage is live from step `first` to step `last` of an op.
struct LiveSpan {
  StorageId storage;  ///< a root
  std::size_t first = 0, last = 0;

  friend bool operator==(const LiveSpan&, const LiveSpan&) = default;
};

struct OpLiveness {
  std::size_t steps = 1;
  /// By storage, then by step; several for one storage where it is dead in between. Of all that the
  /// op touches.
  std::vector<LiveSpan> spans;
};

/// `needed`, by storage: what an op after this one, or a caller, reads.
OpLiveness liveness(const Graph& graph, OpId op, const std::vector<bool>& needed);

}  // namespace arenite::graph
