// Ctrl-C and SIGTERM end a command in order: what is under way is finished, and nothing is left
// half done.
#pragma once

#include <atomic>

namespace arenite::cli {

/// From now on the first of these signals says on standard error what will happen and turns
/// `interrupted` true; the second one ends the process, as either would have done before.
void catch_interrupts();

/// From now on either of these signals ends the process at once, with status 130.
void exit_on_interrupts();

const std::atomic<bool>& interrupted() noexcept;

}  // namespace arenite::cli
