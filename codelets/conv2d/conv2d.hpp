// The convolution's pieces: attributes, checks and geometry that its ops share, and their CPU
// kernels.
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

#include <initializer_list>
#include <optional>
#include <vector>

namespace arenite::codelets::conv2d {

/// Attributes stride, padding and dilation, then `more`.
inline std::vector<graph::AttributeSchema> schema(
    std::initializer_list<graph::AttributeSchema> more = {}) {
  using Kind = graph::AttributeType;
  using List = std::vector<std::int64_t>;
  std::vector<graph::AttributeSchema> all{{"stride", Kind::integers, List{1, 1}},
                                          {"padding", Kind::integers, List{0, 0}},
                                          {"dilation", Kind::integers, List{1, 1}}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Shape rules, also of the pooled forms (conv2d_relu_max_pool2d), whose codes are the forward op's
/// second result and stand behind the gradient in the others.
Results infer_forward(const OpView& op);
Results infer_grad_input(const OpView& op);
Results infer_grad_weight(const OpView& op);

/// Two ops one behind the other, the first of them with all the attributes.
inline std::optional<graph::Attributes> attributes_of_first(const std::vector<OpView>& chain) {
  return chain.at(0).attributes();
}

/// Input, output and windows of a convolution, alone or with ReLU and max pooling, whichever of the
/// three ops is looked at.
struct Geometry {
  Image x, y;
  Window window;
  Pair pool{1, 1};      ///< outputs of the convolution side by side, of which y has the greatest
  bool biased = false;  ///< of the forward op: without a bias there may be no third address at all
  bool relu = false;    ///< of the forward op
  /// What a ReLU before the convolution has made, if the input gradient's is taken with it.
  std::optional<Image> output = std::nullopt;

  static Geometry forward(const OpView& op);
  static Geometry grad_input(const OpView& op);
  static Geometry grad_weight(const OpView& op);

  std::int64_t taps() const noexcept { return window.area(); }
  /// The convolution's outputs; those that no pooling window covers are left out.
  Pair convolved() const noexcept { return {y.h * pool.h, y.w * pool.w}; }
  double flops() const noexcept;  ///< of the convolution

  /// From pixel (oy·s, ox·s) of a sample with this distance between rows to what tap (ky, kx) of
  /// output (oy, ox) reads; in elements, one entry a tap.
  std::vector<std::int64_t> tap_offsets(std::int64_t row) const;
};

template <auto geometry>
graph::Cost cost(const OpView& op) {
  return {.flops = geometry(op).flops(), .bytes = bytes_touched(op)};
}

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
