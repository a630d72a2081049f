// Windows over images [N, H, W, C] without halos, as a thread sees them: one element at a time.
#pragma once

#include "codelets/cuda/kernel.hpp"
#include "codelets/image.hpp"

namespace arenite::codelets::cuda {

struct Element {
  std::int64_t n, y, x, c;
};

ARENITE_GPU inline Element element_at(const Image& image, std::int64_t i) {
  const std::int64_t pixel = i / image.c, row = pixel / image.w;
  return {row / image.h, row % image.h, pixel % image.w, i % image.c};
}

ARENITE_GPU inline std::int64_t index_of(const Image& image, std::int64_t n, std::int64_t y,
                                         std::int64_t x, std::int64_t c) {
  return ((n * image.h + y) * image.w + x) * image.c + c;
}

inline std::int64_t elements(const Image& image) { return image.n * image.h * image.w * image.c; }

/// Calls f(tap, row, column) for the pixels of x that the window of output (oy, ox) covers, tap by
/// tap.
template <class F>
ARENITE_GPU void each_tap(const Window& window, const Image& x, std::int64_t oy, std::int64_t ox,
                          F f) {
  for (std::int64_t ky = 0; ky < window.kernel.h; ++ky) {
    const std::int64_t row = oy * window.stride.h - window.padding.h + ky * window.dilation.h;
    if (row < 0 || row >= x.h) continue;
    for (std::int64_t kx = 0; kx < window.kernel.w; ++kx) {
      const std::int64_t column = ox * window.stride.w - window.padding.w + kx * window.dilation.w;
      if (column < 0 || column >= x.w) continue;
      f(ky * window.kernel.w + kx, row, column);
    }
  }
}

/// Calls f(tap, oy, ox) for the windows, among rows × columns, that cover a pixel, and the tap of
/// each that does.
template <class F>
ARENITE_GPU void each_window(const Window& window, std::int64_t rows, std::int64_t columns,
                             std::int64_t y, std::int64_t x, F f) {
  for (std::int64_t ky = 0; ky < window.kernel.h; ++ky) {
    const std::int64_t down = y + window.padding.h - ky * window.dilation.h;
    if (down < 0 || down % window.stride.h != 0 || down / window.stride.h >= rows) continue;
    for (std::int64_t kx = 0; kx < window.kernel.w; ++kx) {
      const std::int64_t right = x + window.padding.w - kx * window.dilation.w;
      if (right < 0 || right % window.stride.w != 0 || right / window.stride.w >= columns) continue;
      f(ky * window.kernel.w + kx, down / window.stride.h, right / window.stride.w);
    }
  }
}

}  // namespace arenite::codelets::cuda
