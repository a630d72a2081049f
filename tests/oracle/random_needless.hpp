// Ops that nobody needs as they are: what `tidy` finds.
#pragma once

#include "tests/oracle/random_values.hpp"

namespace arenite::oracle {

/// An op once more, one that changes nothing, chains that come back to where they began, and ops of
/// constants.
void add_needless(RandomValues& values);

}  // namespace arenite::oracle
