// A reduction as kernels for GPUs, whose sources are made while a program is built: of each sweep
// over the groups' elements one in which a thread makes totals of some elements of a group, and
// others that put those together; and one in the end that makes what has all elements.
#pragma once

#include "codelets/words.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace arenite::codelets {

/// One thread for each index below `count`, of which the parameters are the operands, the results
/// and the workspace (see codelets/cuda/generated.hpp).
struct ReduceLaunch {
  std::string source;
  std::int64_t count;
};

struct ReduceSource {
  std::vector<ReduceLaunch> launches;  ///< one after the other
  std::int64_t workspace = 0;          ///< bytes
};

/// Of an op whose values have no halo.
ReduceSource reduce_source(const OpView& op);

}  // namespace arenite::codelets
