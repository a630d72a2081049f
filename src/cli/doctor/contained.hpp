// Checks that may crash, hang or end the process, kept from doing so to ours.
#pragma once

#include "src/cli/doctor/finding.hpp"

#include <chrono>
#include <functional>

namespace arenite::cli::doctor {

/// Runs the check in a process of its own, and gives what it found. Where it throws, crashes, ends
/// the process or takes longer than `limit`, that is the finding, with the last lines it wrote.
/// Only while the process has one thread.
Finding contained(const std::function<Finding()>& check, std::chrono::milliseconds limit);

}  // namespace arenite::cli::doctor
