// The fused convolution's rules: which kernels run, their scratch, gradients, and errors.
#include "codelets/conv2d_relu_max_pool2d/reference.hpp"

namespace arenite::codelets::testing::fused {
namespace {

/// One of the three ops, on values that nobody writes.
void declare_op(OpHarness& harness, const std::string& op, const Case& t) {
  const ValueId x = harness.declare("x", DType::float32, t.x()),
                w = harness.declare("w", DType::float32, t.weight()),
                g = harness.declare("g", DType::float32, t.y()),
                code = harness.declare("code", DType::uint8, t.y());
  if (op == "conv2d_relu_max_pool2d") harness.op(op, {x, w}, t.attributes());
  if (op == "conv2d_relu_max_pool2d_grad_input") {
    harness.op(op, {g, code, w}, t.attributes("size", List{t.h, t.w}));
  }
  if (op == "conv2d_relu_max_pool2d_grad_weight") {
    harness.op(op, {x, g, code}, t.attributes("kernel", List{t.kh, t.kw}));
  }
}

/// The first kernel that supports the op is what `select` takes.
std::string first_kernel(const std::string& op, const Case& t) {
  OpHarness harness;
  declare_op(harness, op, t);
  return harness.cpu_kernels().front();
}

/// The shapes that the fast kernels are made for reach them.
TEST(Conv2dReluMaxPool2d, FastKernelsComeFirst) {
  if (!built_with_avx512()) GTEST_SKIP() << "a build without AVX-512";
  const Case lenet1{.n = 2, .h = 28, .w = 28, .c = 1, .k = 6, .kh = 5, .kw = 5, .ph = 2, .pw = 2},
      lenet2{.n = 2, .h = 14, .w = 14, .c = 6, .k = 16, .kh = 5, .kw = 5},
      cnn1{.n = 2, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      cnn2{.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      vgg{.n = 1, .h = 16, .w = 16, .c = 128, .k = 128, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      resnet{.n = 2, .h = 32, .w = 32, .c = 3, .k = 64, .kh = 7, .kw = 7, .sh = 2, .sw = 2};
  const std::string forward = "conv2d_relu_max_pool2d";
  for (const Case& t : {lenet1, lenet2, cnn1, resnet}) {
    EXPECT_EQ(first_kernel(forward, t), "direct") << t.text();
  }
  for (const Case& t : {cnn2, vgg}) EXPECT_EQ(first_kernel(forward, t), "winograd") << t.text();
  for (const Case& t : {lenet2, cnn2, vgg}) {
    EXPECT_EQ(first_kernel(forward + "_grad_input", t), "sparse") << t.text();
    EXPECT_EQ(first_kernel(forward + "_grad_weight", t), "sparse") << t.text();
  }
  Case thirds = cnn1;
  thirds.qh = thirds.qw = 3;
  for (const Case& t : {lenet1, cnn1, thirds}) {
    EXPECT_EQ(first_kernel(forward + "_grad_weight", t), "sparse_patch") << t.text();
  }
  EXPECT_EQ(first_kernel(forward + "_grad_input", thirds), "sparse");
}

/// Scratch stays in proportion to the op's values, whichever way these are long: dilations and
/// windows along one axis cost nothing along the other.
TEST(Conv2dReluMaxPool2d, WorkspaceIsInProportion) {
  const Case dilated{
      .n = 1, .h = 16000, .w = 1, .c = 64, .k = 64, .kh = 3, .kw = 1, .dh = 512, .qw = 1};
  Case tall = dilated, pooled = dilated, few = dilated;
  tall.kh = 64, tall.dh = 1;
  pooled.dh = 1, pooled.qh = 127;
  few.h = 1000000, few.c = few.k = 4, few.kh = 2, few.dh = 500000;
  for (Case t : {dilated, tall, pooled, few}) {
    for (const bool wide : {false, true}) {
      if (wide) {
        std::swap(t.h, t.w), std::swap(t.kh, t.kw), std::swap(t.dh, t.dw), std::swap(t.qh, t.qw);
      }
      for (const std::string op : {"conv2d_relu_max_pool2d", "conv2d_relu_max_pool2d_grad_input",
                                   "conv2d_relu_max_pool2d_grad_weight"}) {
        OpHarness harness;
        declare_op(harness, op, t);
        const OpView view(harness.graph(),
                          harness.graph()[harness.graph()[graph::Graph::body].ops.back()]);
        for (const std::string& name : harness.cpu_kernels()) {
          const auto& kernel = kernels().at(op, name, DeviceKind::cpu);
          if (!kernel.workspace) continue;
          EXPECT_LE(static_cast<double>(kernel.workspace(view)), 2 * bytes_touched(view))
              << op << " " << name << " " << t.text();
        }
      }
    }
  }
}

TEST(Conv2dReluMaxPool2d, GradientRuleAppendsWhatIsWanted) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 6, 6, 3}), w = harness.random("w", {3, 3, 3, 4}),
                b = harness.random("b", {4});
  const ValueId y = harness.op("conv2d_relu_max_pool2d", {x, w, b}).front();
  const graph::OpId op = harness.graph()[y].producer;
  const ValueId g = harness.random("g", harness.graph()[y].shape);
  const auto rule = harness.graph()[op].definition->gradient;
  const std::size_t before = harness.graph().op_count();
  {
    graph::GradientContext first_layer(harness.builder(), op, {g, {}}, {false, true, true});
    rule(first_layer);
    EXPECT_FALSE(first_layer.operand_gradient(0));
    EXPECT_EQ(harness.graph()[first_layer.operand_gradient(1)].shape, (Shape{3, 3, 3, 4}));
    EXPECT_EQ(harness.graph()[first_layer.operand_gradient(2)].shape, Shape{4});
    EXPECT_EQ(harness.graph().op_count(), before + 1);
  }
  graph::GradientContext input(harness.builder(), op, {g, {}}, {true, false, false});
  rule(input);
  EXPECT_EQ(harness.graph()[input.operand_gradient(0)].shape, (Shape{2, 6, 6, 3}));
  EXPECT_EQ(harness.graph().op_count(), before + 2);
  graph::GradientContext unused(harness.builder(), op, {ValueId{}, {}}, {true, true, true});
  rule(unused);
  EXPECT_EQ(harness.graph().op_count(), before + 2);
}

TEST(Conv2dReluMaxPool2d, ShapeRuleErrors) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 4, 4, 3}), w = harness.random("w", {3, 3, 3, 8}),
                g = harness.random("g", {2, 1, 2, 8}),
                code = harness.declare("code", DType::uint8, {2, 1, 2, 8});
  const std::string name = "conv2d_relu_max_pool2d";
  expect_error(
      [&] {
        harness.op(name, {x, w}, {{"pool", List{3, 1}}});
      },
      name +
          ": pooling windows of 3x1 over a convolution's output of 2x2; expected "
          "windows that fit");
  expect_error(
      [&] {
        harness.op(name, {x, w}, {{"pool", List{64, 2}}});
      },
      name +
          ": pooling windows of 64x2; expected at most 127 taps (hint: pool in two "
          "steps)");
  expect_error(
      [&] {
        harness.op(name, {x, w}, {{"pool", List{0, 2}}});
      },
      name +
          ": pool=[0, 2]; expected two integers (rows, columns) of at least 1 and "
          "below 2^31");
  expect_error(
      [&] {
        harness.op(name, {x, x});
      },
      name +
          ": operand 'weight' (x) of shape [2, 4, 4, 3] for an input of 3 channels; "
          "expected [KH, KW, 3, K]");
  expect_error(
      [&] {
        harness.op(name + "_grad_input", {g, code, w}, {{"size", List{4, 4}}});
      },
      name +
          "_grad_input: operand 'gradient' (g) of shape [2, 1, 2, 8]; expected [2, 1, 1, 8], as "
          "the pooled output has");
  expect_error(
      [&] {
        harness.op(name + "_grad_weight", {x, g, g}, {{"kernel", List{3, 1}}});
      },
      name + "_grad_weight: operand 'code' (g) of type float32; expected uint8");
}

}  // namespace
}  // namespace arenite::codelets::testing::fused
