// Dense layers in double, for their tests.
#pragma once

#include <cstdint>
#include <vector>

namespace arenite::codelets::testing {

struct Sizes {
  std::int64_t n, i, o;
};

inline std::vector<double> reference(const std::vector<double>& x,
                                     const std::vector<double>& weight,
                                     const std::vector<double>& bias, Sizes s) {
  std::vector<double> y(static_cast<std::size_t>(s.n * s.o));
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t n = 0; n < s.n; ++n) {
    for (std::int64_t o = 0; o < s.o; ++o) {
      double sum = bias.empty() ? 0 : bias[at(o)];
      for (std::int64_t i = 0; i < s.i; ++i) sum += x[at(n * s.i + i)] * weight[at(i * s.o + o)];
      y[at(n * s.o + o)] = sum;
    }
  }
  return y;
}

inline std::vector<double> transposed(const std::vector<double>& a, std::int64_t rows,
                                      std::int64_t columns) {
  std::vector<double> t(a.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      t[static_cast<std::size_t>(c * rows + r)] = a[static_cast<std::size_t>(r * columns + c)];
    }
  }
  return t;
}

}  // namespace arenite::codelets::testing
