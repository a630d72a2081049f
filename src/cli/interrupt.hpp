// Ctrl-C and SIGTERM end a command in order: what is under way is finished, and nothing is left
// half done.
#pragma once

#include <sys/types.h>

#include <atomic>

namespace arenite::cli {

/// From now on the first of these signals says on standard error what will happen and turns
/// `interrupted` true; the second one ends the process, as either would have done before.
void catch_interrupts();

/// From now on either of these signals ends the process at once, with status 130.
void exit_on_interrupts();

/// And this group of processes before it; 0: none any more.
void end_with_interrupts(pid_t group) noexcept;

const std::atomic<bool>& interrupted() noexcept;

}  // namespace arenite::cli
