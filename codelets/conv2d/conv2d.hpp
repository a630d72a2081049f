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

/// All but the kernel's size, which comes from another place in each op.
inline Window window_of(const OpView& op, Pair kernel) {
  const graph::Attributes& attributes = op.attributes();
  return {.kernel = kernel,
          .stride = pair_of(attributes, "stride", 1),
          .padding = pair_of(attributes, "padding", 0),
          .dilation = pair_of(attributes, "dilation", 1)};
}

/// Operands x, weight and bias of a forward op.
inline void expect_forward_operands(const OpView& op) {
  const Shape& x = expect_rank4(op, 0, DType::float32, "[N, H, W, C]");
  const Shape& weight = expect_rank4(op, 1, DType::float32, "[KH, KW, C, K]");
  if (weight[2] != x[3]) {
    fail({.found = operand_text(op, 1) + " of shape " + to_string(weight) + " for an input of " +
                   std::to_string(x[3]) + " channels",
          .expected = "[KH, KW, " + std::to_string(x[3]) + ", K]"});
  }
  if (!op.has_operand(2)) return;
  expect_value(op, 2, DType::float32, Shape{weight[3]}, "one for each output channel");
}

/// The gradient, operand 0, and the weight, operand `weight`, of an input gradient.
inline void expect_grad_input_operands(const OpView& op, std::size_t weight) {
  const Shape& gradient = expect_rank4(op, 0, DType::float32, "[N, OH, OW, K]");
  const Shape& shape = expect_rank4(op, weight, DType::float32, "[KH, KW, C, K]");
  if (shape[3] == gradient[3]) return;
  fail({.found = operand_text(op, weight) + " of shape " + to_string(shape) +
                 " for a gradient of " + std::to_string(gradient[3]) + " channels",
        .expected = "[KH, KW, C, " + std::to_string(gradient[3]) + "]"});
}

/// Two ops one behind the other, the first of them with all the attributes.
inline std::optional<graph::Attributes> attributes_of_first(const std::vector<OpView>& chain) {
  return chain.at(0).attributes();
}

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
