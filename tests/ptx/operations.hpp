// What instructions compute: functions of registers, by the names that PTX has for them.
#pragma once

#include "tests/ptx/program.hpp"

#include <array>
#include <string_view>

namespace ptx {

struct Operation {
  Function function = nullptr;
  std::uint8_t to = 0;  ///< bytes of a lane of the result; 0: a predicate
  std::uint8_t sources = 0;
  std::array<std::uint8_t, 4> from{};  ///< of the sources, likewise
};

/// Null where there is none of that name.
const Operation* find_operation(std::string_view name);

}  // namespace ptx
