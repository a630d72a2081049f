// From the graph that a front end built to what a program is made of.
#pragma once

#include <arenite/model.hpp>
#include <arenite/runtime/program.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace arenite {

/// On which devices, and by which kernels.
struct Where {
  std::vector<Space> spaces;
  runtime::KernelWishes wishes;
};

struct Compiled {
  runtime::ProgramSpec spec;
  /// By output of the graph that was given: how many of the program's hold it, one behind the
  /// other, each the rows of a lane.
  std::vector<std::size_t> pieces;
  std::vector<std::string> copies;  ///< as Model::copies
};

/// Every pass from fusing to the plan, over a graph of known sizes; with the updates that
/// `graph.training` asks for, if it does. A batch is split in as many lanes as its work pays for.
/// What persists is placed in `state`. It runs in `where.spaces`, and what lanes share in the
/// first.
Compiled compile(const graph::Graph& graph, std::string name, const graph::TargetProfile& target,
                 plan::StateLayout& state, const Where& where);

}  // namespace arenite
