// `--count-heap`: the process starts itself anew with the library that counts its heap calls.
#pragma once

namespace arenite::cli {

/// Returns if heap calls are counted (arenite/runtime/heap_calls.hpp). Else makes the process begin
/// again, with the same arguments and the counter in front of what LD_PRELOAD holds: call it before
/// anything is opened or said. Throws Error where this build has no counter or it cannot be found,
/// Failure where the system will not preload it.
void count_heap();

}  // namespace arenite::cli
