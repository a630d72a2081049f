// Random ops that attention adds to layers: norms, softmax, rotations by complex numbers.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// Adds one of them; each has a gradient.
void add_attention_op(RandomValues& values);

}  // namespace arenite::oracle
