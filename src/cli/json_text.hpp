// JSON on one line.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace arenite::cli {

/// What is no UTF-8, as a path may be, has U+FFFD in its place; numbers that are none are null.
std::string line_of(const nlohmann::ordered_json& json);

}  // namespace arenite::cli
