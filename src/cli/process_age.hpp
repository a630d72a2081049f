// How long ago the process began.
#pragma once

#include <optional>

namespace arenite::cli {

/// Seconds since this process was started, loading of its libraries included; up to one of the
/// kernel's clock ticks (0.01 s) too many, never too few. None where /proc does not say.
std::optional<double> process_age();

}  // namespace arenite::cli
