// From the graph that a front end built to what a program is made of.
#pragma once

#include <arenite/model.hpp>
#include <arenite/runtime/program.hpp>

#include <string>

namespace arenite {

/// Every pass from fusing to the plan, over a graph of known sizes; with the updates that
/// `graph.training` asks for, if it does. What persists is placed in `state`.
runtime::ProgramSpec compile(graph::Graph graph, std::string name,
                             const graph::TargetProfile& target, plan::StateLayout& state);

}  // namespace arenite
