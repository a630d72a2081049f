// What each worker did, over all programs of the process.
#pragma once

#include "src/runtime/capture/captured.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace arenite::runtime {

/// A recorded task. The references are into the CapturedProcess.
struct TimelineTask {
  const CapturedSet* set = nullptr;
  const CapturedProgram* program = nullptr;
  std::size_t step = 0, task = 0;  ///< of program->steps, of their runs
  /// Since when its worker is known to have done nothing: the end of the task before, or this
  /// one's begin where others may have run in between that were not recorded.
  std::int64_t free_since = 0;

  const RecordedStep::Run& run() const { return program->steps[step].runs[task]; }
};

/// By worker, in the order in which they ran.
std::vector<std::vector<TimelineTask>> timeline(const CapturedProcess& process);

/// When the first recorded task began; 0 where there is none.
std::int64_t first_begin(const CapturedProcess& process);

}  // namespace arenite::runtime
