// From the graph that a front end built to the program that runs: the one way there is.
//
//   graph::Graph ──► passes (passes.cpp has their table) ──► plan::StepPlan ──►
//   runtime::ProgramSpec
//
// Whoever plans, runs, trains, explains or times a graph comes here, so that what is planned is
// what runs.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/target.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/compile/report.hpp"

namespace arenite::compile {

/// What to run of a graph: its outputs, …
struct Entry {
  std::string name;       ///< the program's
  bool train = false;     ///< … with the gradients and updates that `graph.training` asks for
  bool averaged = false;  ///< … of the means that it keeps, in place of the parameters
  bool of_graph = false;  ///< … of the graph's only entry (graph::at_entry), in its mode
  /// Of training; none: of an update by as many batches as there may be the last.
  std::optional<graph::BatchOfUpdate> part = {};
};

struct Options {
  std::vector<Space> spaces{Space{}};  ///< to run in; what lanes share is in the first
  /// Shards of the batch, and lanes of one of them; 64 lanes in all at most. 0: as many as the
  /// estimated work pays for, which depends on the graph and the profile alone, so that the order
  /// of arithmetic never depends on a machine or its load; but one lane in each of several shards
  /// that are given, and one shard of lanes that are.
  int shards = 0, lanes = 0;
  /// Shards under way together: needs bytes, never changes bits. 0: enough for all workers, and all
  /// where it is not said how many there are, or where they run on GPUs.
  int at_once = 0;
  int workers = 0;   ///< CPU workers that will run it; 0: any number
  bool fuse = true;  ///< do several ops in one go, where an operator can
  runtime::KernelWishes kernels;
  graph::TargetProfile target = graph::default_target();
  plan::StepOptions plan{.solve = {}};  ///< with the solver's own effort
  bool graphs = false;   ///< the report has the graph as text, before and behind passes
  bool remarks = false;  ///< the report says what was left as it was, and why
};

struct Compiled {
  runtime::ProgramSpec spec;  ///< its constants not yet bound
  /// By output of the graph that was given: how many of the program's hold it, one behind the
  /// other, each the rows of a lane.
  std::vector<std::size_t> pieces;
  graph::BatchCut cut;
  int at_once = 1;       ///< shards
  std::string position;  ///< as graph::ModeApplied has it, and the next
  std::int64_t samples = 0;
  /// Parameters that were to be trained and that the loss does not depend on: they stay as they
  /// are.
  std::vector<std::string> untrained;
  Report report;
};

/// All passes, over a graph of known sizes; a graph whose ops have their kernels already is taken
/// as somebody left it. Nothing has a place yet. Throws Error on what a pass refuses, and on a
/// graph of which some ops have kernels, where others, or the gradients that it is to get, have
/// none; on shards that somebody asked for to train in, where they would wait for each other, but
/// for layers that are of the whole batch by their meaning: lanes of one shard take their place;
/// and on fewer of them at once than all on several devices.
Compiled lower(const graph::Graph& graph, const Entry& entry, const Options& options);

/// The same with its plan; what outlives a step is placed in `state`.
Compiled compile(const graph::Graph& graph, const Entry& entry, const Options& options,
                 plan::StateLayout& state);

/// Lets the means of parameters that the graph of a program has begin as the parameters are.
void begin_averages(runtime::ProgramSet& set, const graph::Graph& graph);

// ---- the table of passes -----------------------------------------------------------------------

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
