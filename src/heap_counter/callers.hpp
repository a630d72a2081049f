// Whose heap calls they are: the program's or that of one of its libraries.
#pragma once

namespace arenite::heap_counter {

/// Whether $ARENITE_HEAP_CALLERS names a file, which in the end gets {"process": {"program": calls,
/// "libstarpu-1.4.so.9": calls, …}, "steps": the same of calls while steps were under way}. False
/// while the process begins.
extern bool callers_wanted;

/// Counts a call from there. Allocates nothing, takes no lock.
void count_caller(const void* address) noexcept;

/// Whether steps are under way from now on.
void set_under_way(bool yes) noexcept;

}  // namespace arenite::heap_counter
