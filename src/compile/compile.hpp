// From the graph that a front end built to the program that runs: the one way there is.
//
//   graph::Graph ──► passes (passes.cpp has their table) ──► plan::StepPlan ──►
//   runtime::ProgramSpec
//
// Whoever plans, runs, trains, explains or times a graph comes here, so that what is planned is
// what runs.
#pragma once

#include <arenite/graph/graph.hpp>
#include <arenite/graph/target.hpp>
#include <arenite/plan/step_plan.hpp>
#include <arenite/runtime/program.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "src/compile/report.hpp"

namespace arenite::compile {

/// What to run of a graph: its outputs, …
struct Entry {
  std::string name;    ///< the program's
  bool train = false;  ///< … with the gradients and updates that `graph.training` asks for
};

struct Options {
  std::vector<Space> spaces{Space{}};  ///< to run in; what lanes share is in the first
  /// Shares of a batch that run side by side. 0: as many as the estimated work pays for, which
  /// depends on the graph and the profile alone, so that the order of arithmetic never depends on a
  /// machine or its load.
  int lanes = 0;
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
  int lanes = 1;
  Report report;
};

/// All passes, over a graph of known sizes; a graph whose ops have their kernels already is taken
/// as somebody left it. Nothing has a place yet. Throws Error on what a pass refuses, and on a
/// graph of which some ops have kernels, where others, or the gradients that it is to get, have
/// none.
Compiled lower(const graph::Graph& graph, const Entry& entry, const Options& options);

/// The same with its plan; what outlives a step is placed in `state`.
Compiled compile(const graph::Graph& graph, const Entry& entry, const Options& options,
                 plan::StateLayout& state);

}  // namespace arenite::compile
