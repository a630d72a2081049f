// Max pooling's pieces.
//
// max_pool2d(x) -> output, code   attributes kernel, stride (empty: the kernel), padding
//   code[n,oy,ox,c] is the row-major number, in the window, of the tap that won: the first of
//   equals. A NaN wins over everything (over another NaN the later one, as in PyTorch). Padding
//   never wins.
// max_pool2d_grad(gradient, code) -> dx   attributes plus `size`, the input's rows and columns
//   Each gradient goes to the tap that won; where windows overlap they add up; pixels in no window
//   get 0. A code with bit 7 set (see `pool2d::dead`) stands for no tap at all.
#pragma once

#include "codelets/pool2d.hpp"
#include "codelets/registry.hpp"

namespace arenite::codelets::max_pool2d {

struct Geometry {
  Image x, y, code;
  Window window;

  static Geometry forward(const OpView& op);
  static Geometry grad(const OpView& op);
};

/// Any shape; one loop over channels for each window.
Kernel plain_forward();
Kernel plain_grad();

/// AVX-512 lanes over several 2×2 windows of few channels; unsupported in builds without AVX-512.
Kernel direct_forward();
Kernel direct_grad();

}  // namespace arenite::codelets::max_pool2d
