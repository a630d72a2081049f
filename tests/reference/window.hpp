// A window that slides over images [N, H, W, C]: what convolutions and poolings share.
#pragma once

#include <arenite/error.hpp>

#include "tests/reference/evaluator.hpp"

namespace arenite::reference {

/// Something for rows and something for columns.
struct Pair {
  std::int64_t h = 1, w = 1;
};

/// A list attribute of two; `otherwise` where the list is empty.
inline Pair pair_of(const graph::Attributes& attributes, std::string_view name,
                    Pair otherwise = {}) {
  const auto& list = attributes.integers(name);
  return list.empty() ? otherwise : Pair{list.at(0), list.at(1)};
}

struct Window {
  Pair kernel, stride, padding{0, 0}, dilation;

  std::int64_t output_h(std::int64_t h) const {
    return (h + 2 * padding.h - (kernel.h - 1) * dilation.h - 1) / stride.h + 1;
  }
  std::int64_t output_w(std::int64_t w) const {
    return (w + 2 * padding.w - (kernel.w - 1) * dilation.w - 1) / stride.w + 1;
  }

  /// Calls f(pixel, tap, output) for every tap of every window that lies inside the image, windows
  /// and their taps in row-major order. `pixel` and `output` are where the channels of x's and y's
  /// pixel begin. Throws Error when the shapes do not belong together.
  template <class F>
  void each_tap(const Shape& x, const Shape& y, F f) const {
    if (y[0] != x[0] || y[1] != output_h(x[1]) || y[2] != output_w(x[2])) {
      fail({.found = "windows over " + to_string(x) + " that give " + to_string(y),
            .expected = std::to_string(output_h(x[1])) + " rows and " +
                        std::to_string(output_w(x[2])) + " columns"});
    }
    for (std::int64_t n = 0; n < y[0]; ++n) {
      for (std::int64_t oy = 0; oy < y[1]; ++oy) {
        for (std::int64_t ox = 0; ox < y[2]; ++ox) {
          for (std::int64_t tap = 0; tap < kernel.h * kernel.w; ++tap) {
            const std::int64_t iy = oy * stride.h - padding.h + tap / kernel.w * dilation.h,
                               ix = ox * stride.w - padding.w + tap % kernel.w * dilation.w;
            if (iy < 0 || iy >= x[1] || ix < 0 || ix >= x[2]) continue;
            f(((n * x[1] + iy) * x[2] + ix) * x[3], tap, ((n * y[1] + oy) * y[2] + ox) * y[3]);
          }
        }
      }
    }
  }
};

}  // namespace arenite::reference
