// Random products of matrices, and values whose axes change places.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// One of any ranks and ways to read the operands.
void add_product(RandomValues& values);

/// Of any type but codes of pooling windows: those are addresses.
void add_permutation(RandomValues& values);

}  // namespace arenite::oracle
