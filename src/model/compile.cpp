#include "src/model/compile.hpp"

#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include <numeric>
#include <utility>

namespace arenite {
namespace {

using graph::Graph;

struct Lowered {
  Graph graph;
  graph::Schedule schedule;
  std::vector<std::size_t> pieces;
};

Lowered lower(Graph graph, const graph::TargetProfile& target, int lanes) {
  Lowered lowered;
  lowered.pieces.assign(graph.outputs.size(), 1);
  std::vector<graph::ValueId> losses;
  if (graph.training) losses = {graph.training->loss};
  if (lanes > 1) {
    if (auto batch = graph::split_batch(graph, operators(), lanes)) {
      graph = std::move(batch->graph);
      lowered.pieces = std::move(batch->pieces);
      losses = std::move(batch->losses);
    }
  }
  if (graph.training) {
    graph::add_training(graph, operators(), losses);
    graph::fuse(graph, operators());
  }
  graph::keep_buffers(graph, operators());
  graph::merge_sums(graph, operators());
  graph::split_features(graph, operators(), target);
  graph::split_rows(graph, operators(), target);
  graph::fuse_updates(graph, operators());
  graph::select(graph, *runtime::kernel_selector(kernels()));
  graph::in_place(graph);
  lowered.schedule = graph::coarsen(graph, target);
  lowered.graph = std::move(graph);
  return lowered;
}

/// By estimated work alone, so that the order of arithmetic never depends on a machine's load.
int lanes_for(const graph::Schedule& schedule, const graph::TargetProfile& target) {
  return target.lanes(
      std::accumulate(schedule.tasks.begin(), schedule.tasks.end(), 0.0,
                      [](double sum, const graph::Task& task) { return sum + task.microseconds; }));
}

}  // namespace

Compiled compile(const Graph& graph, std::string name, const graph::TargetProfile& target,
                 plan::StateLayout& state) {
  Graph fused = graph;
  graph::fuse(fused, operators());
  Lowered lowered = lower(fused, target, 1);
  if (const int lanes = lanes_for(lowered.schedule, target); lanes > 1)
    lowered = lower(std::move(fused), target, lanes);
  Compiled compiled{.spec = {.name = std::move(name), .target = target},
                    .pieces = std::move(lowered.pieces)};
  for (const auto& [op, reason] : graph::inserted_copies(lowered.graph))
    compiled.copies.push_back(describe(lowered.graph, op) + ": " + reason);
  compiled.spec.plan = plan::plan_step(lowered.graph, lowered.schedule, state, {.solve = {}});
  compiled.spec.graph = std::move(lowered.graph);
  compiled.spec.schedule = std::move(lowered.schedule);
  return compiled;
}

}  // namespace arenite
