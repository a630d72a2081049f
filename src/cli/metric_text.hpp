// Metrics for people.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <string>

namespace arenite::cli {

/// "96.30 %"; a dash where there is none.
inline std::string percent(double share) {
  return std::isnan(share) ? "–" : fmt::format("{:.2f} %", share * 100);
}

inline std::string metric_text(const std::string& name, double value) {
  return name == "accuracy" ? percent(value) : fmt::format("{:.4f}", value);
}

}  // namespace arenite::cli
