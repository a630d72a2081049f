#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// One op, element by element or with axes of size 1, of a random value; all of them have
/// gradients.
void add_elementwise(RandomValues& values);

}  // namespace arenite::oracle
