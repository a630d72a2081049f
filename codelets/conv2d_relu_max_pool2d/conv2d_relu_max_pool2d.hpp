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

#include "codelets/pool2d.hpp"
#include "codelets/registry.hpp"

#include <optional>

namespace arenite::codelets::conv2d_relu_max_pool2d {

using pool2d::dead;

/// Input, pooled output and windows of whichever of the three ops is looked at.
struct Geometry {
  Image x, y, code;
  Window window;  ///< of the convolution
  Pair pool;
  bool biased = false;  ///< of the forward op: without a bias there may be no third address at all
  /// What a ReLU before the convolution has made, if the input gradient's is taken with it.
  std::optional<Image> output = std::nullopt;

  static Geometry forward(const OpView& op);
  static Geometry grad_input(const OpView& op);
  static Geometry grad_weight(const OpView& op);

  std::int64_t taps() const noexcept { return window.area(); }
  /// The convolution's outputs that some window covers.
  Pair convolved() const noexcept { return {y.h * pool.h, y.w * pool.w}; }
  /// The convolution's output that tap `code` of window (oy, ox) is.
  Pair winner(std::int64_t oy, std::int64_t ox, std::uint8_t tap) const noexcept {
    return {oy * pool.h + tap / pool.w, ox * pool.w + tap % pool.w};
  }
  double convolution_flops() const noexcept;
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
