#include "src/model/compile.hpp"

#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include <utility>

namespace arenite {
runtime::ProgramSpec compile(graph::Graph graph, std::string name,
                             const graph::TargetProfile& target, plan::StateLayout& state) {
  graph::fuse(graph, operators());
  if (graph.training) graph::add_training(graph, operators());
  graph::keep_buffers(graph, operators());
  graph::merge_sums(graph, operators());
  graph::split_rows(graph, operators(), target);
  graph::select(graph, *runtime::kernel_selector(kernels()));
  graph::in_place(graph);
  runtime::ProgramSpec spec{.name = std::move(name), .target = target};
  spec.schedule = graph::coarsen(graph, target);
  spec.plan = plan::plan_step(graph, spec.schedule, state, {.solve = {}});
  spec.graph = std::move(graph);
  return spec;
}

}  // namespace arenite
