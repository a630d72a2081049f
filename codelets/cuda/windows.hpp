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

/// Taps [first, end) of a window along one axis.
struct TapRange {
  std::int64_t first, end;
};

/// Those that lie within an axis of `size` pixels, of a window whose tap 0 lies at `start`.
ARENITE_GPU inline TapRange taps_inside(std::int64_t start, std::int64_t size, std::int64_t taps,
                                        std::int64_t dilation) {
  const std::int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0,
                     end = start < size ? (size - start + dilation - 1) / dilation : 0;
  return {first, end < taps ? end : taps};
}

/// Those with which some of `windows` windows, `stride` apart, may lie on the pixel that is `at`
/// behind the first window's tap 0.
ARENITE_GPU inline TapRange taps_on(std::int64_t at, std::int64_t windows, std::int64_t stride,
                                    std::int64_t taps, std::int64_t dilation) {
  const std::int64_t beyond = at - windows * stride,  // tap k lies in a window if at − k·d is more
      first = beyond >= 0 ? beyond / dilation + 1 : 0, end = at >= 0 ? at / dilation + 1 : 0;
  return {first, end < taps ? end : taps};
}

/// Calls f(tap, row, column) for the pixels of x that the window of output (oy, ox) covers, tap by
/// tap.
template <class F>
ARENITE_GPU void each_tap(const Window& window, const Image& x, std::int64_t oy, std::int64_t ox,
                          F f) {
  const std::int64_t top = oy * window.stride.h - window.padding.h,
                     left = ox * window.stride.w - window.padding.w;
  const TapRange down = taps_inside(top, x.h, window.kernel.h, window.dilation.h),
                 right = taps_inside(left, x.w, window.kernel.w, window.dilation.w);
  for (std::int64_t ky = down.first; ky < down.end; ++ky) {
    for (std::int64_t kx = right.first; kx < right.end; ++kx)
      f(ky * window.kernel.w + kx, top + ky * window.dilation.h, left + kx * window.dilation.w);
  }
}

/// How many those are, without a dilation.
ARENITE_GPU inline std::int64_t tap_count(const Window& window, const Image& x, std::int64_t oy,
                                          std::int64_t ox) {
  const TapRange down =
      taps_inside(oy * window.stride.h - window.padding.h, x.h, window.kernel.h, 1);
  const TapRange right =
      taps_inside(ox * window.stride.w - window.padding.w, x.w, window.kernel.w, 1);
  return (down.end - down.first) * (right.end - right.first);
}

/// Calls f(tap, oy, ox) for the windows, among rows × columns, that cover a pixel, and the tap of
/// each that does.
template <class F>
ARENITE_GPU void each_window(const Window& window, std::int64_t rows, std::int64_t columns,
                             std::int64_t y, std::int64_t x, F f) {
  const std::int64_t from_top = y + window.padding.h, from_left = x + window.padding.w;
  const TapRange down =
                     taps_on(from_top, rows, window.stride.h, window.kernel.h, window.dilation.h),
                 right = taps_on(from_left, columns, window.stride.w, window.kernel.w,
                                 window.dilation.w);
  for (std::int64_t ky = down.first; ky < down.end; ++ky) {
    const std::int64_t oy = from_top - ky * window.dilation.h;
    if (oy % window.stride.h != 0) continue;
    for (std::int64_t kx = right.first; kx < right.end; ++kx) {
      const std::int64_t ox = from_left - kx * window.dilation.w;
      if (ox % window.stride.w != 0) continue;
      f(ky * window.kernel.w + kx, oy / window.stride.h, ox / window.stride.w);
    }
  }
}

}  // namespace arenite::codelets::cuda
