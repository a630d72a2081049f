// When this process began, by the kernel's account.
#pragma once

#include <optional>

namespace arenite {

/// Seconds since the machine was booted, its sleeps included.
double since_boot();

/// On that clock, to a hundredth of a second. A process may have been other programs before (exec).
/// None where the kernel does not say.
std::optional<double> process_start();

}  // namespace arenite
