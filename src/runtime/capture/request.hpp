// What the environment asks of a process to record; see arenite/runtime/profile.hpp for its words.
#pragma once

#include <optional>
#include <string>

namespace arenite::runtime {

struct CaptureRequest {
  std::string trace, memory;  ///< files; empty: not wanted
  long steps = 20;            ///< of each program, its last ones
};

/// None where nothing is asked for. Throws Error on a number of steps that is none, and on files
/// that cannot be written.
std::optional<CaptureRequest> capture_request();

}  // namespace arenite::runtime
