// Attributes compared by their bits.
#pragma once

#include <arenite/graph/attributes.hpp>

namespace arenite::graph {

/// -0 differs from 0; all NaN are one.
bool same_bits(const Attributes& a, const Attributes& b);

}  // namespace arenite::graph
