// The loops that run one instruction on a tile, in the best instructions that the machine has.
#pragma once

#include <cstddef>

#include "src/expr/code.hpp"

namespace arenite::expr {

/// Makes so many elements. In tiles a boolean is an int32, 0 or −1.
using Loop = void (*)(void* target, const void* const* sources, std::size_t count);

/// Throws Error where ARENITE_ISA names instructions that the machine lacks.
Loop find_loop(const Instruction& instruction);

/// Those of functions of floats alone, and all others.
Loop find_float_loop(const Instruction& instruction);
Loop find_plain_loop(const Instruction& instruction);

}  // namespace arenite::expr
