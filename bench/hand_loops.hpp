// Formulas as one would write them by hand: a loop over vectors for each.
#pragma once

#include <cstdint>
#include <string_view>

namespace arenite::bench {

/// Of rows of so many elements; operands and results lie as the formula's do, in full vectors.
using HandLoop = void (*)(const float* const* operands, std::int64_t rows, std::int64_t columns,
                          float* const* results);

/// nullptr: nobody wrote one.
HandLoop by_hand(std::string_view formula);

}  // namespace arenite::bench
