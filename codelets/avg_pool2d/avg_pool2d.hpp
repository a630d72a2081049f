// Average pooling's pieces.
//
// avg_pool2d(x) -> output   attributes kernel, stride (empty: the kernel), padding, count_padding
//   y[n,oy,ox,c] = Σ x[n, oy·s−p+ky, ox·s−p+kx, c] / divisor, over the taps inside the image
//   count_padding=1: the divisor is the window's area, so that padding counts as zeros
//   count_padding=0: the divisor is the number of taps inside the image
// avg_pool2d_grad(gradient) -> dx   attributes plus `size`, the input's rows and columns
//   Every tap gets its window's gradient over the divisor; where windows overlap they add up;
//   pixels in no window get 0. Nothing of the forward pass is needed.
#pragma once

#include "codelets/pool2d.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets::avg_pool2d {

struct Geometry {
  Image x, y;
  Window window;
  bool count_padding = true;

  static Geometry forward(const OpView& op);
  static Geometry grad(const OpView& op);

  /// What each tap of a window counts for.
  float weight(const pool2d::Taps& taps) const noexcept {
    return 1.0f / static_cast<float>(count_padding ? window.area() : taps.count());
  }
};

/// Any shape; vectors over the channels of each window.
Kernel plain_forward();
Kernel plain_grad();

}  // namespace arenite::codelets::avg_pool2d
