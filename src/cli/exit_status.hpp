// How `arenite` ends.
#pragma once

namespace arenite::cli {

enum ExitStatus : int {
  exit_ok = 0,
  exit_failure = 1,    ///< a run failed although its input was right; a check of `doctor` fails
  exit_bad_input = 2,  ///< wrong arguments, files or data, and files that cannot be written
  exit_capacity = 3,   ///< a plan needs more bytes than it may have
  exit_interrupted = 130,
};

}  // namespace arenite::cli
