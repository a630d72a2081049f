// Learning rate schedules by name: formulas of the step's number, as graph::Training has them.
#pragma once

#include <arenite/graph/attributes.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arenite::graph {

struct RateSchedule {
  std::string_view name;
  /// "steps, up <= 1 = 0.3": steps is given, up is 0.3 unless it is. "at[]" is a list of steps, and
  /// in the formula how many of them have been.
  std::string_view numbers;
  std::string_view formula;  ///< of these, and of `t`: steps before this one
};

std::span<const RateSchedule> rate_schedules();

/// The text of one. Throws Error on a name that is none, on a number that it has not or lacks,
/// and on one out of range: all are finite and at least 0, those without a standard above 0.
std::string rate_schedule(std::string_view name, const Attributes& numbers);

}  // namespace arenite::graph
