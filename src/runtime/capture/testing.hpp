// For tests of traces.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace arenite::runtime::testing {

/// Events of one kind on one track, in time.
inline std::vector<nlohmann::json> slices(const nlohmann::json& trace, int process, int track) {
  std::vector<nlohmann::json> list;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == process && event.at("tid") == track)
      list.push_back(event);
  }
  std::ranges::stable_sort(list, {},
                           [](const nlohmann::json& e) { return e.at("ts").get<double>(); });
  return list;
}

inline double end_of(const nlohmann::json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

}  // namespace arenite::runtime::testing
