// What each pass calls at its end.
#pragma once

#include <arenite/graph/verify.hpp>

namespace arenite::graph {

/// `verify` in checked builds; in others the compiler verifies what it is given, what `select` has
/// been over, and what it hands out.
inline void verify_pass([[maybe_unused]] const Graph& graph) {
  if constexpr (ARENITE_CHECKED != 0) verify(graph);
}

}  // namespace arenite::graph
