// Convolution, bias, ReLU and max pooling as one operation: its pieces and their CPU kernels.
//
// conv2d_relu_max_pool2d(x, weight, bias?) -> output, code
//   output = max_pool2d(relu(conv2d(x, weight, bias))), windows of `pool` side by side, none
//   overlapping, rows and columns that fill no window left out
//   code[n,oy,ox,k]: the row-major number, in the pooling window, of the tap that won (the first of
//   equals), or `dead` where no tap is above 0: such an output passes no gradient on. A NaN wins.
//   Backward takes any byte with bit 7 set for `dead`; others that name no tap are not allowed.
//   The fast kernels add the bias after pooling: of taps that only its rounding makes equal they
//   may name another one.
//
// conv2d_relu_max_pool2d_grad_input(gradient, code, weight) -> dx
//   attributes plus `size`, the input's rows and columns
//
// conv2d_relu_max_pool2d_grad_input_relu(gradient, code, weight, output) -> dx
//   relu_grad of that: 0 where `output`, which a ReLU before the convolution has made, is
//
// conv2d_relu_max_pool2d_grad_weight(x, gradient, code) -> dweight, dbias
//   attributes plus `kernel`, the weight's rows and columns
//
// Images are [N, H, W, C] float32, weights [KH, KW, C, K], codes uint8 in the output's shape. The
// codes are all that backward keeps of the convolution's own output, which never exists in memory:
// of `pool` taps at most one has a gradient, so that backward does at most 1/area of the work.
//
// Values that are not finite may spread in the fast kernels: to the outputs of neighbouring windows
// as NaN, and to gradients that losers multiply by 0.
#pragma once

#include "codelets/conv2d/conv2d.hpp"
#include "codelets/pool2d.hpp"

namespace arenite::codelets::conv2d_relu_max_pool2d {

using pool2d::dead;

/// The convolution's, where y is the pooled output, and its codes.
struct Geometry : conv2d::Geometry {
  Image code;

  static Geometry forward(const OpView& op);
  static Geometry grad_input(const OpView& op);
  static Geometry grad_weight(const OpView& op);

  /// The convolution's output that tap `code` of window (oy, ox) is.
  Pair winner(std::int64_t oy, std::int64_t ox, std::uint8_t tap) const noexcept {
    return {oy * pool.h + tap / pool.w, ox * pool.w + tap % pool.w};
  }
};

/// Plain loops: any shape.
Kernel plain_forward();
Kernel plain_grad_input();
Kernel plain_grad_weight();

/// LIBXSMM batch-reduce GEMM over the taps. Forward pools the rows of a window while they are in
/// cache; backward spreads one sample's gradient over its windows and goes on densely.
Kernel xsmm_forward();
Kernel xsmm_grad_input();  ///< stride 1 only
Kernel xsmm_grad_weight();

/// AVX-512, pooling in registers; both unsupported in builds without it.
Kernel direct_forward();    ///< few channels, windows of 2x2 or (few output channels) 3x3
Kernel winograd_forward();  ///< 3x3 kernels, stride 1, windows of 2x2

/// AVX-512, visiting only the windows that are alive.
Kernel sparse_grad_input();         ///< stride 1, no dilation, windows of 2x2 or 3x3
Kernel sparse_grad_weight();        ///< windows of at most 16 taps
Kernel sparse_patch_grad_weight();  ///< few input channels and taps, stride 1

}  // namespace arenite::codelets::conv2d_relu_max_pool2d
