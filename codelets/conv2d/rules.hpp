// Attributes and checks that the convolution and its fused form share.
#pragma once

#include "codelets/image.hpp"

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

}  // namespace arenite::codelets::conv2d
