// conv2d_relu and the input gradients that take a ReLU's: what NaNs become, and the gradient rule.
// Their numbers are compared beside those of the plain convolution.
#include "codelets/conv2d/reference.hpp"

#include <cmath>
#include <limits>

namespace arenite::codelets::testing::convolution {
namespace {

const graph::Attributes padded{{"padding", std::vector<std::int64_t>{1, 1}}};

graph::Attributes sized(std::int64_t size) {
  graph::Attributes all = padded;
  all.set("size", std::vector{size, size});
  return all;
}

/// Few channels and many, so that every kernel has its turn.
TEST(Conv2dRelu, KeepsNaN) {
  Runs runs;
  for (const std::int64_t channels : {1, 32}) {
    OpHarness h;
    const ValueId x = h.random("x", {2, 12, 12, channels}),
                  w = h.random("w", {3, 3, channels, channels == 1 ? 4 : 32});
    auto values = h.read<float>(x);
    values[0] = std::numeric_limits<float>::quiet_NaN();  // pixel (0, 0): outputs around it
    h.write(x, values);
    const ValueId y = h.op("conv2d_relu", {x, w}, padded).front();
    const auto outputs = static_cast<std::size_t>(h.graph()[w].shape[3]);
    for (const std::string& kernel : h.cpu_kernels()) {
      ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
      ++runs[kernel];
      const auto out = h.read<float>(y);
      for (std::size_t k = 0; k < outputs; ++k) EXPECT_TRUE(std::isnan(out[k])) << kernel;
      const std::size_t second_sample = 12 * 12 * outputs;
      for (std::size_t i = second_sample; i < out.size(); ++i) {
        ASSERT_FALSE(std::isnan(out[i])) << kernel;
        ASSERT_GE(out[i], 0) << kernel;
      }
    }
    // A NaN that a ReLU has made lets the gradient through, as relu_grad does.
    const ValueId g = h.random("g", h.graph()[y].shape),
                  dx = h.op("conv2d_grad_input_relu", {g, w, x}, sized(12)).front();
    for (const std::string& kernel : h.cpu_kernels()) {
      ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
      EXPECT_NE(h.read<float>(dx)[0], 0) << kernel;
    }
  }
  EXPECT_EQ(runs["plain"], 2u);
}

TEST(Conv2dRelu, GradientAgreesWithTheTwoOps) {
  OpHarness h(5);
  const ValueId x = h.random("x", {2, 6, 6, 3}), w = h.random("w", {3, 3, 3, 8}),
                b = h.random("b", {8}), g = h.random("g", {2, 6, 6, 8});
  h.op("conv2d_relu", {x, w, b}, padded);
  h.run("plain");
  const auto fused = h.gradient({g}, {true, true, true});
  const ValueId y = h.op("conv2d", {x, w, b}, padded).front();
  h.run("plain");
  h.op("relu", {y});
  h.run("fused");
  const ValueId of_y = h.gradient({g}, {true}).front();
  h.op("conv2d", {x, w, b}, padded);
  const auto apart = h.gradient({of_y}, {true, true, true});
  for (std::size_t i = 0; i < 3; ++i)
    expect_close(h.read<float>(fused[i]), as_doubles(h.read<float>(apart[i])), 2e-6);
  // Nothing is appended when nothing is wanted.
  h.op("conv2d_relu", {x, w});
  const std::size_t ops = h.graph().op_count();
  h.gradient({g}, {false, false});
  EXPECT_EQ(h.graph().op_count(), ops);
}

TEST(Conv2dRelu, ShapeRuleErrors) {
  const auto refusal = [](std::string_view op, bool coded, const Shape& output) -> std::string {
    OpHarness h;
    const ValueId g = h.declare("g", DType::float32, {2, 4, 4, 8}),
                  w = h.declare("w", DType::float32, {3, 3, 3, 8}),
                  y = h.declare("y", DType::float32, output);
    std::vector<ValueId> operands{g, w, y};
    if (coded) operands.insert(operands.begin() + 1, h.declare("c", DType::uint8, {2, 4, 4, 8}));
    try {
      h.op(op, operands, sized(coded ? 8 : 4));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(refusal("conv2d_grad_input_relu", false, {2, 4, 4, 3}), "no error");
  EXPECT_EQ(refusal("conv2d_grad_input_relu", false, {2, 4, 4, 8}),
            "conv2d_grad_input_relu: operand 'output' (y) of shape [2, 4, 4, 8]; expected "
            "[2, 4, 4, 3], the shape of the result");
  EXPECT_EQ(refusal("conv2d_relu_max_pool2d_grad_input_relu", true, {2, 8, 8, 3}), "no error");
  EXPECT_EQ(refusal("conv2d_relu_max_pool2d_grad_input_relu", true, {2, 4, 4, 3}),
            "conv2d_relu_max_pool2d_grad_input_relu: operand 'output' (y) of shape [2, 4, 4, 3]; "
            "expected [2, 8, 8, 3], the shape of the result");
}

}  // namespace
}  // namespace arenite::codelets::testing::convolution
