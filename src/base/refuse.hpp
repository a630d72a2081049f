// Errors in one line.
#pragma once

#include <arenite/error.hpp>

#include <string>
#include <utility>

namespace arenite {

/// Throws Error with these parts, as fail() does.
[[noreturn]] inline void refuse(std::string found, std::string expected, std::string where = {},
                                std::string hint = {}) {
  fail({.found = std::move(found),
        .expected = std::move(expected),
        .where = std::move(where),
        .hint = std::move(hint)});
}

}  // namespace arenite
