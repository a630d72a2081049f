// What ctest does for tests that count heap calls (arenite/runtime/heap_calls.hpp).
#pragma once

namespace arenite::testing {

/// Whether ctest preloads the counter in this build: sanitizers have a malloc of their own.
inline constexpr bool heap_counted = ARENITE_HEAP_COUNTED;

}  // namespace arenite::testing
