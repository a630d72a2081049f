// Whose heap calls they are: the program's or that of one of its libraries.
#pragma once

namespace arenite::heap_counter {

/// Whether $ARENITE_HEAP_CALLERS names a file, which gets {"program": calls, "libstarpu-1.4.so.9":
/// calls, …} in the end. False while the process begins.
extern bool callers_wanted;

/// Counts a call from there. Allocates nothing, takes no lock.
void count_caller(const void* address) noexcept;

}  // namespace arenite::heap_counter
