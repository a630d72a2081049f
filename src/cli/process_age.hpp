// How long ago the process began.
#pragma once

#include <optional>

namespace arenite::cli {

/// Seconds since this process was started, loading of its libraries included; up to one of the
/// kernel's clock ticks (0.01 s) too many, never too few. Of a process that was another program for
/// more than a second before, seconds since this program's libraries were loaded. None where /proc
/// does not say.
std::optional<double> process_age();

}  // namespace arenite::cli
