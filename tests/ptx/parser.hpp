// Reads PTX.
#pragma once

#include "tests/ptx/program.hpp"

#include <string_view>

namespace ptx {

/// The kernels of a module. Throws std::runtime_error on what is no PTX, or is none that can be
/// run: with the line, and what was found there.
Module parse(std::string_view text);

}  // namespace ptx
