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

Lowered lower(Graph graph, const graph::TargetProfile& target, int lanes,
              const graph::Spaces& spaces, const runtime::KernelWishes& wishes) {
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
  if (spaces == graph::Spaces{}) {  // for caches that CPU workers do not share
    graph::split_features(graph, operators(), target);
    graph::split_rows(graph, operators(), target);
  }
  if (spaces.shared.device != DeviceKind::cpu)  // where launches count
    graph::group_updates(graph, operators());
  graph::fuse_updates(graph, operators());
  const auto selector = runtime::kernel_selector(kernels(), wishes);
  graph::place(graph, operators(), spaces, *selector);
  graph::select(graph, *selector);
  graph::in_place(graph);
  lowered.schedule = graph::coarsen(graph, target);
  lowered.graph = std::move(graph);
  return lowered;
}

double work_of(const graph::Schedule& schedule) {
  return std::accumulate(
      schedule.tasks.begin(), schedule.tasks.end(), 0.0,
      [](double sum, const graph::Task& task) { return sum + task.microseconds; });
}

/// By estimated work alone, so that the order of arithmetic never depends on a machine's load.
Lowered lower(const Graph& graph, const graph::TargetProfile& target, const Where& where) {
  const auto with = [&](int lanes, const graph::Spaces& spaces) {
    return lower(graph, target, lanes, spaces, where.wishes);
  };
  if (where.spaces == std::vector{Space{}}) {
    Lowered lowered = with(1, {});
    const int lanes = target.lanes(work_of(lowered.schedule));
    return lanes > 1 ? with(lanes, {}) : std::move(lowered);
  }
  const auto dealt = graph::deal_out(where.spaces, 0, [&](const Space& space) {
    return work_of(with(1, {.shared = space, .lanes = {}}).schedule);
  });
  return with(static_cast<int>(dealt.lanes.size()), dealt);
}

}  // namespace

Compiled compile(const Graph& graph, std::string name, const graph::TargetProfile& target,
                 plan::StateLayout& state, const Where& where) {
  Graph fused = graph;
  graph::fuse(fused, operators());
  Lowered lowered = lower(fused, target, where);
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
