// Random products of matrices.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// One of any ranks and ways to read the operands.
void add_product(RandomValues& values);

}  // namespace arenite::oracle
