// Maps and reductions as kernels for GPUs, whose sources are made while a program is built.
#pragma once

#include "codelets/map/map.hpp"

namespace arenite::codelets {

/// One thread for each index below `count`. Its parameters are the operands and the results, which
/// have no halo, and, of reductions, the workspace (see codelets/cuda/generated.hpp).
struct GpuLaunch {
  std::string source;
  std::int64_t count;
};

/// What a map is.
GpuLaunch launch_of_elements(const Elementwise& op);

/// What a reduction is.
struct GroupLaunches {
  std::vector<GpuLaunch> launches;  ///< one after the other
  std::int64_t workspace = 0;       ///< bytes
};
GroupLaunches launches_of_groups(const Elementwise& op);

}  // namespace arenite::codelets
