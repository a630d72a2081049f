// Heap calls of the whole process so far: ours, StarPU's, the kernels'.
//
//   LD_PRELOAD=build/release/libarenite_heap_counter.so program
//
// A small library counts them in a process that preloads it, as `arenite train --count-heap` makes
// its own do; elsewhere nobody does. Any thread may ask; the first question of a process may itself
// allocate, so ask once before you begin to count.
#pragma once

#include <optional>

namespace arenite::runtime {

/// Calls of malloc, calloc, realloc, reallocarray and the aligned forms, and of free with a pointer
/// that is not null; `new` and `delete` come down to these. None where nobody counts.
std::optional<long> heap_calls() noexcept;

/// Calls of mmap, munmap, mremap, brk and sbrk by others than the C library itself. None where
/// nobody counts.
std::optional<long> map_calls() noexcept;

/// Tells whoever counts that steps are under way from now on, or no longer: with
/// ARENITE_HEAP_CALLERS=FILE calls are counted by library, and those of steps apart.
void count_as_steps(bool under_way) noexcept;

}  // namespace arenite::runtime
