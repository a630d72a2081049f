// For tests of traces.
#pragma once

#include "src/base/json.hpp"

#include <algorithm>
#include <vector>

namespace arenite::runtime::testing {

/// Events of one kind on one track, in time.
inline std::vector<Json> slices(const Json& trace, int process, int track) {
  std::vector<Json> list;
  for (const Json& event : trace.at("traceEvents").items()) {
    if (event.at("ph") == "X" && event.at("pid") == process && event.at("tid") == track)
      list.push_back(event);
  }
  std::ranges::stable_sort(list, {}, [](const Json& e) { return e.at("ts").number(); });
  return list;
}

inline double end_of(const Json& event) {
  return event.at("ts").number() + event.at("dur").number();
}

}  // namespace arenite::runtime::testing
