// The preloaded counter, seen from a test.
#pragma once

#include <dlfcn.h>

namespace arenite::testing {

/// Whether ctest preloads the counter in this build: sanitizers have a malloc of their own.
inline constexpr bool heap_counted = ARENITE_HEAP_COUNTED;

/// Heap calls of the whole process so far; -1 when the counter is not preloaded.
inline long heap_calls() {
  using Counter = long (*)();
  static const auto counter = reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, "arenite_heap_calls"));
  return counter ? counter() : -1;
}

}  // namespace arenite::testing
