// Which instruction set the vector loops use.
#pragma once

#include <string_view>

namespace arenite::expr {

/// Lets Highway choose no better instructions than the environment variable ARENITE_ISA names:
/// avx512, avx2 or baseline; where it is not set, or empty, the best that there are. What calls
/// HWY_DYNAMIC_DISPATCH calls this first; only the first call does something. Thread-safe.
/// Throws Error, each time, on another word, and on instructions that the machine lacks.
void apply_isa();

/// The name of those in use: as above. Throws like apply_isa().
std::string_view isa();

}  // namespace arenite::expr
