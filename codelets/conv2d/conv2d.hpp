// The convolution's pieces: geometry that its three ops share, and their CPU kernels.
//
// conv2d(x, weight, bias?) -> y
//   y[n,oy,ox,k] = bias[k] + Σ x[n, oy·s−p+ky·d, ox·s−p+kx·d, c] · weight[ky,kx,c,k]
//
// conv2d_relu(x, weight, bias?) -> relu(y)
//
// conv2d_grad_input(gradient, weight) -> dx
//   attributes plus `size`, the input's rows and columns
//
// conv2d_grad_input_relu(gradient, weight, output) -> dx
//   relu_grad of that: 0 where `output`, which a ReLU before the convolution has made, is
//
// conv2d_grad_weight(x, gradient) -> dw
//   attributes plus `kernel`, the weight's rows and columns
//
// Images are [N, H, W, C], weights [KH, KW, C, K] with K contiguous; all float32.
#pragma once

#include "codelets/image.hpp"
#include "codelets/registry.hpp"

#include <optional>

namespace arenite::codelets::conv2d {

/// Input, output and window of a convolution, whichever of the three ops is looked at.
struct Geometry {
  Image x, y;
  Window window;
  bool biased = false;  ///< of the forward op: without a bias there may be no third address at all
  bool relu = false;    ///< the forward op is conv2d_relu
  /// What a ReLU before the convolution has made, if the input gradient's is taken with it.
  std::optional<Image> output = std::nullopt;

  static Geometry forward(const OpView& op);
  static Geometry grad_input(const OpView& op);
  static Geometry grad_weight(const OpView& op);

  std::int64_t taps() const noexcept { return window.area(); }
  double flops() const noexcept;

  /// From pixel (oy·s, ox·s) of a sample with this distance between rows to what tap (ky, kx) of
  /// output (oy, ox) reads; in elements, one entry a tap.
  std::vector<std::int64_t> tap_offsets(std::int64_t row) const;
};

/// Plain loops: any shape.
Kernel plain_forward();
Kernel plain_grad_input();
Kernel plain_grad_weight();

/// LIBXSMM batch-reduce GEMM over the taps, a row of pixels at a time.
Kernel xsmm_forward();
Kernel xsmm_grad_input();  ///< stride 1 only
Kernel xsmm_grad_weight();

/// AVX-512 lanes over (pixel, channel) pairs, for few channels; unsupported in builds without
/// AVX-512.
Kernel direct_forward();
Kernel direct_grad_weight();

/// AVX-512, 3×3 kernels with stride 1 and no dilation, for enough channels and pixels; unsupported
/// in builds without AVX-512.
Kernel winograd_forward();
Kernel winograd_grad_input();

}  // namespace arenite::codelets::conv2d
