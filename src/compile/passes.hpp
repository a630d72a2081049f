// The table of passes, and what they work on.
#pragma once

#include <arenite/graph/passes.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/compile/compile.hpp"

namespace arenite::compile {

/// A graph on its way.
struct Lowering {
  const Entry& entry;
  const Options& options;
  const graph::KernelSelector& selector;
  graph::Spaces spaces;
  bool selected = false;  ///< somebody has chosen kernels before
  graph::BatchCut cut;    ///< to be cut in, and then what it was cut in
  int at_once = 1;        ///< shards
  graph::Graph graph;
  std::string one_shard;               ///< as in graph::BatchGraph
  std::vector<graph::ValueId> losses;  ///< what adds up to the loss, lane by lane
  std::vector<std::size_t> pieces;     ///< as in Compiled
  graph::Schedule schedule;
  std::string undivided;               ///< as in Report
  std::vector<std::string> untrained;  ///< as in Compiled
  graph::ModeApplied mode;
};

struct Pass {
  std::string_view name;     ///< "fuse"
  std::string_view what;     ///< "does chains of ops in one go", for people
  std::string_view of_what;  ///< what it counts: "chain"
  /// Why it does not apply; empty: it does.
  std::string (*skip)(const Lowering&);
  /// Returns how many things it did.
  int (*run)(Lowering&, graph::Remarks*);
};

/// From the first to the last.
std::span<const Pass> passes();
/// The pass behind which all ops have their kernels, so that their work can be estimated.
std::size_t behind_select();

/// Runs these passes, and notes in `report` what became of each.
void run(std::span<const Pass> passes, Lowering& lowering, Report& report);

}  // namespace arenite::compile
