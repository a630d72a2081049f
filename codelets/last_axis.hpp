// Values as rows along their last axis, for operators that fold each row to a number.
#pragma once

#include "codelets/rules.hpp"

#include <algorithm>
#include <cstdint>

namespace arenite::codelets {

/// An operand of floats with a last axis.
inline const Shape& expect_last_axis(const OpView& op, std::size_t i) {
  expect_type(op, i, DType::float32);
  expect_axes(op, i, "[..., C]");
  return op.operand(i).shape;
}

struct LastAxis {
  std::int64_t rows = 0, length = 0;

  explicit LastAxis(const Shape& shape) : length(shape.at(-1)) {
    if (length > 0) rows = shape.elements() / length;
  }
};

/// term(0) + … + term(count − 1) in double, in a fixed order whatever the width of the machine's
/// vectors.
template <class Term>
double sum_along(std::int64_t count, Term term) noexcept {
  constexpr std::int64_t lanes = 16;
  double lane[lanes] = {};
  std::int64_t from = 0;
  for (; from + lanes <= count; from += lanes) {
#pragma omp simd
    for (std::int64_t i = 0; i < lanes; ++i) lane[i] += term(from + i);
  }
  for (std::int64_t i = 0; i < count - from; ++i) lane[i] += term(from + i);
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

}  // namespace arenite::codelets
