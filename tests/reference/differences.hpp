// Central differences: what every gradient is compared with.
#pragma once

#include "tests/reference/evaluator.hpp"

#include <cmath>
#include <optional>
#include <utility>

namespace arenite::reference {

/// A direction in the space of a value's elements: those that move, and how far.
using Direction = std::vector<std::pair<std::int64_t, double>>;

/// (f(v + h·d) − f(v − h·d)) / 2h, with f read from the evaluator after its ops ran again. None
/// where a kink lies between the two: the op took another branch. The evaluator must have run; v is
/// as before afterwards, what depends on it is not.
template <class F>
std::optional<double> central_difference(Evaluator& evaluator, graph::ValueId v,
                                         const Direction& direction, double h, F f) {
  const std::vector<double> middle = evaluator[v].data;
  const auto at = [&](double distance) {
    for (const auto& [i, d] : direction)
      evaluator[v][i] = middle[static_cast<std::size_t>(i)] + distance * d;
    evaluator.rerun(v);
    return std::pair{f(), evaluator.decisions().branches};
  };
  const auto above = at(h), below = at(-h);
  evaluator[v].data = middle;
  if (above.second != below.second) return std::nullopt;
  return (above.first - below.first) / (2 * h);
}

/// How far a slope is from what a gradient says, over the gradient's size: its largest element for
/// the slope of one element, its norm for that of many. NaN and a gradient of zeros are infinitely
/// far off.
inline double disagreement(double slope, const Direction& direction,
                           const std::vector<double>& gradient) {
  double expected = 0, largest = 0, squares = 0;
  for (const auto& [i, d] : direction) expected += d * gradient.at(static_cast<std::size_t>(i));
  for (double g : gradient) largest = std::fmax(largest, std::fabs(g)), squares += g * g;
  const double size = direction.size() == 1 ? largest : std::sqrt(squares);
  const double ratio = std::fabs(slope - expected) / size;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

}  // namespace arenite::reference
