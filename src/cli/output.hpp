// What commands print.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace arenite::cli {

/// JSON on one line. What is no UTF-8, as a path may be, has U+FFFD in its place; numbers that are
/// none are null.
inline std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// Throws Failure where standard output takes no more: what was not written was not reported.
void flush_output();

}  // namespace arenite::cli
