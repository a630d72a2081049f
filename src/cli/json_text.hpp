// JSON on one line.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace arenite::cli {

/// What is no UTF-8, as a path may be, has U+FFFD in its place; numbers that are none are null.
inline std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace arenite::cli
