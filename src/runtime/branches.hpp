// Which ops of a device's task may run side by side in a recording: those of which neither writes
// what the other touches. Small kernels leave most of a GPU to others.
//
//   branch 0   forward … loss   dinput2   dinput1   dweight1   …
//   branch 1                    dweight2  update2
#pragma once

#include <arenite/runtime/program.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite::runtime {

/// What an op touches of its plan's blocks.
struct Footprint {
  struct Range {
    std::size_t block = 0;
    std::int64_t begin = 0, end = 0;
    bool writes = false;
  };
  std::vector<Range> ranges;
  bool reports = false;        ///< it may find a fault in its data
  bool updates_state = false;  ///< it leaves state alone once one was found: their order counts
  bool exclusive = false;      ///< as Kernel::exclusive
};

/// Of the ops of the spec's task with that number.
std::vector<Footprint> footprints(const ProgramSpec& spec, std::size_t task,
                                  const KernelTable& kernels);

/// Where an op is recorded.
struct BranchedOp {
  std::size_t branch = 0;  ///< behind the ops before it on that branch
  /// Ops on other branches that it waits for, beyond those that it follows anyway.
  std::vector<std::size_t> follows;
};

/// For ops in program order: each follows all before it that it must not run beside. No more than
/// `most` branches, the longest way through the ops on few of them. Deterministic.
std::vector<BranchedOp> branch(const std::vector<Footprint>& ops, std::size_t most);

}  // namespace arenite::runtime
