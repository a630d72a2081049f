// What both kinds of pictures start from: a plan's buffers by space, and their live bytes.
#pragma once

#include <arenite/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace arenite::plan {

struct Panel {
  SpacePlan space;
  std::vector<std::size_t> buffers;  // with bytes, by begin, then offset
  std::int64_t begin = 0;            // of the first buffer
  std::int64_t end = 1;              // of the last; above begin
  /// Sum of the live bytes from each time at which it changes, ascending; the last is 0.
  std::vector<std::pair<std::int64_t, std::int64_t>> live;
};

/// One for each space of the plan. Throws Error when the plan's parts do not fit together.
std::vector<Panel> panels(const Plan& plan);

}  // namespace arenite::plan
