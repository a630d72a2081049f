// Children of fork(): they have the memory of a session that runs, and none of its threads.
#pragma once

namespace arenite::runtime {

/// Whether this process was forked while a session ran.
bool is_forked() noexcept;

/// Throws Error in such a process, where whoever waited for a worker would wait for ever.
void refuse_forked();

/// Whether children that are forked from now on are such: a session runs.
void mark_forks(bool session_runs);

}  // namespace arenite::runtime
