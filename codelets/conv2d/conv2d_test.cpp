// Every convolution kernel against plain loops in double, which central differences check in turn.
#include "codelets/conv2d/reference.hpp"

namespace arenite::codelets::testing::convolution {
namespace {

/// Shapes that networks use, then odd ones at random.
std::vector<Case> cases() {
  std::vector<Case> all{
      {.n = 3, .h = 28, .w = 28, .c = 1, .k = 4, .kh = 3, .kw = 3},
      {.n = 2, .h = 28, .w = 28, .c = 1, .k = 6, .kh = 5, .kw = 5, .ph = 2, .pw = 2},
      {.n = 2, .h = 14, .w = 14, .c = 6, .k = 16, .kh = 5, .kw = 5, .x_halo = 2},
      {.n = 2, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 2,
       .h = 14,
       .w = 14,
       .c = 32,
       .k = 64,
       .kh = 3,
       .kw = 3,
       .ph = 1,
       .pw = 1,
       .x_halo = 1,
       .y_halo = 1},
      {.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .y_halo = 3},
      {.n = 1,
       .h = 17,
       .w = 19,
       .c = 3,
       .k = 8,
       .kh = 7,
       .kw = 7,
       .sh = 2,
       .sw = 2,
       .ph = 3,
       .pw = 3},
      {.n = 1, .h = 20, .w = 20, .c = 2, .k = 3, .kh = 16, .kw = 16},  // 256 taps
      {.n = 1, .h = 20, .w = 20, .c = 1, .k = 2, .kh = 17, .kw = 17},  // beyond them
      {.n = 1, .h = 3, .w = 3, .c = 2, .k = 2, .kh = 1, .kw = 1, .ph = 2, .pw = 1},
      {.n = 2, .h = 100, .w = 2, .c = 2, .k = 5, .kh = 2, .kw = 1},
      {.n = 1, .h = 2, .w = 130, .c = 1, .k = 1, .kh = 1, .kw = 5, .pw = 2},
  };
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  while (all.size() < 120) {
    Case t{.n = pick({1, 2, 3, 5}),
           .h = pick({1, 2, 3, 5, 7, 8, 11}),
           .w = pick({1, 2, 4, 6, 7, 9, 12}),
           .c = pick({1, 1, 2, 3, 4, 16, 20, 32}),
           .k = pick({1, 3, 4, 6, 8, 16, 17, 20, 32, 64}),
           .kh = pick({1, 2, 3, 3, 5}),
           .kw = pick({1, 3, 3, 4, 5}),
           .sh = pick({1, 1, 1, 2, 3}),
           .sw = pick({1, 1, 1, 2, 3}),
           .ph = pick({0, 0, 1, 2, 3}),
           .pw = pick({0, 0, 1, 2}),
           .dh = pick({1, 1, 1, 2}),
           .dw = pick({1, 1, 1, 3}),
           .x_halo = static_cast<int>(pick({0, 1, 2, 3})),
           .y_halo = static_cast<int>(pick({0, 1, 2, 3})),
           .bias = pick({0, 1, 1}) == 1};
    if (random() % 3 == 0) t.sw = t.sh = 1, t.pw = t.ph = t.kw / 2;
    if (t.valid()) all.push_back(t);
  }
  return all;
}

TEST(Conv2d, ForwardAgreesWithReference) {
  Runs runs;
  for (const Case& t : cases()) check_forward(t, runs);
  EXPECT_EQ(runs["plain"], cases().size());
}

TEST(Conv2d, WithReluAgreesWithReference) {
  Runs runs;
  for (const Case& t : cases()) check_forward(t, runs, true);
  EXPECT_EQ(runs["plain"], cases().size());
}

TEST(Conv2d, InputGradientAgreesWithReference) {
  Runs runs;
  for (const Case& t : cases()) check_grad_input(t, runs);
  EXPECT_EQ(runs["plain"], cases().size());
}

TEST(Conv2d, InputGradientBehindAReluAgreesWithReference) {
  Runs runs;
  for (const Case& t : cases()) check_grad_input(t, runs, true);
  EXPECT_EQ(runs["plain"], cases().size());
}

TEST(Conv2d, WeightGradientAgreesWithReference) {
  Runs runs;
  for (const Case& t : cases()) {
    OpHarness harness;
    const ValueId x = harness.random("x", t.x(), -1, 1, t.x_halo),
                  g = harness.random("g", t.y(), -1, 1, t.y_halo);
    graph::Attributes attributes = t.attributes();
    attributes.set("kernel", std::vector{t.kh, t.kw});
    const ValueId dw = harness.op("conv2d_grad_weight", {x, g}, attributes).front();
    ASSERT_EQ(harness.graph()[dw].shape, t.weight());
    check_kernels(harness, dw, grad_weight(t, harness.read<float>(x), harness.read<float>(g)),
                  t.text(), runs);
  }
  EXPECT_EQ(runs["plain"], cases().size());
}

#if defined(__x86_64__)
TEST(Conv2d, CommonShapesHaveAFastKernel) {
  OpHarness harness;
  const Case t{.n = 1, .h = 8, .w = 8, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1};
  harness.op("conv2d", {harness.random("x", t.x()), harness.random("w", t.weight())},
             t.attributes());
  EXPECT_EQ(harness.cpu_kernels(), (std::vector<std::string>{"xsmm", "plain"}));
}
#endif

/// Both gradients of Σ y·r, for random r, against central differences of the reference.
TEST(Conv2d, ReferenceGradientsAgreeWithCentralDifferences) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Case& t :
       {Case{.n = 2, .h = 5, .w = 4, .c = 2, .k = 3, .kh = 3, .kw = 2, .ph = 1}, Case{.n = 1,
                                                                                 .h = 7,
                                                                                 .w = 9,
                                                                                 .c = 1,
                                                                                 .k = 2,
                                                                                 .kh = 3,
                                                                                 .kw = 3,
                                                                                 .sh = 2,
                                                                                 .sw = 3,
                                                                                 .pw = 2,
                                                                                 .dh = 2}}) {
    const auto fill = [&](const Shape& shape) {
      Values values(static_cast<std::size_t>(shape.elements()));
      for (double& v : values) v = uniform(random);
      return values;
    };
    Values x = fill(t.x()), weight = fill(t.weight());
    const Values r = fill(t.y());
    const auto loss = [&] {
      const Values y = forward(t, x, weight, Values{});
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * r[i];
      return sum;
    };
    const auto numeric = [&](Values& values) {
      Values gradient;
      for (double& v : values) {
        const double kept = v, step = 1e-4;
        v = kept + step;
        const double above = loss();
        v = kept - step;
        gradient.push_back((above - loss()) / (2 * step));
        v = kept;
      }
      return gradient;
    };
    expect_close(numeric(x), grad_input(t, r, weight), 1e-8, t.text());
    expect_close(numeric(weight), grad_weight(t, x, r), 1e-8, t.text());
  }
}

/// What the rule appends, on every kernel, against central differences of the reference.
TEST(Conv2d, GradientRuleAgreesWithCentralDifferences) {
  const Case plain{.n = 2, .h = 6, .w = 5, .c = 2, .k = 4, .kh = 3, .kw = 2};
  Case strided = plain, padded = plain, dilated = plain, all = plain;
  strided.sh = 2, strided.sw = 3;
  padded.ph = 2, padded.pw = 1;
  dilated.dh = 2, dilated.dw = 3;
  all.sh = 3, all.sw = 2, all.ph = 1, all.pw = 2, all.dh = 2, all.dw = 3;
  for (const Case& t : {plain, strided, padded, dilated, all}) {
    OpHarness harness;
    const ValueId x = harness.random("x", t.x()), w = harness.random("w", t.weight()),
                  b = harness.random("b", {t.k}), g = harness.random("g", t.y());
    const Values xs = as_doubles(harness.read<float>(x)), ws = as_doubles(harness.read<float>(w)),
                 bs = as_doubles(harness.read<float>(b)), gs = as_doubles(harness.read<float>(g));
    harness.op("conv2d", {x, w, b}, t.attributes());
    const std::vector<Values> expected{
        numeric_gradient([&](const Values& v) { return forward(t, v, ws, bs); }, xs, gs),
        numeric_gradient([&](const Values& v) { return forward(t, xs, v, bs); }, ws, gs),
        numeric_gradient([&](const Values& v) { return forward(t, xs, ws, v); }, bs, gs)};
    for (const char* kernel : {"plain", "xsmm", "direct"}) {
      const auto gradients = harness.gradient({g}, {true, true, true}, kernel);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_close(harness.read<float>(gradients[i]), expected[i], 1e-5, kernel + t.text());
    }
  }
}

TEST(Conv2d, GradientRuleAppendsWhatIsWanted) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 6, 6, 3}), w = harness.random("w", {3, 3, 3, 4}),
                b = harness.random("b", {4});
  const ValueId y =
      harness.op("conv2d", {x, w, b}, {{"stride", std::vector<std::int64_t>{2, 2}}}).front();
  const graph::OpId op = harness.graph()[y].producer;
  const ValueId g = harness.random("g", harness.graph()[y].shape);
  const auto rule = harness.graph()[op].definition->gradient;
  {
    graph::GradientContext ctx(harness.builder(), op, {g}, {false, true, true});
    rule(ctx);
    EXPECT_FALSE(ctx.operand_gradient(0));
    EXPECT_EQ(harness.graph()[ctx.operand_gradient(1)].shape, (Shape{3, 3, 3, 4}));
    EXPECT_EQ(harness.graph()[ctx.operand_gradient(2)].shape, Shape{4});
  }
  const std::size_t before = harness.graph().op_count();
  graph::GradientContext ctx(harness.builder(), op, {g}, {true, false, false});
  rule(ctx);
  EXPECT_EQ(harness.graph().op_count(), before + 1);
  EXPECT_EQ(harness.graph()[ctx.operand_gradient(0)].shape, (Shape{2, 6, 6, 3}));
  graph::GradientContext unused(harness.builder(), op, {ValueId{}}, {true, true, true});
  rule(unused);
  EXPECT_EQ(harness.graph().op_count(), before + 1);
}

std::string error_of(std::string_view op, const std::vector<Shape>& shapes,
                     graph::Attributes attributes = {}, DType first = DType::float32) {
  OpHarness harness;
  std::vector<ValueId> operands;
  for (const Shape& shape : shapes) {
    const DType type = operands.empty() ? first : DType::float32;
    operands.push_back(
        harness.builder().declare(std::string(1, static_cast<char>('a' + operands.size())), type,
                                  shape, graph::StorageClass::activation));
  }
  try {
    harness.op(op, operands, std::move(attributes));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Conv2d, ShapeRuleErrors) {
  using List = std::vector<std::int64_t>;
  const Shape x{2, 4, 4, 3}, w{3, 3, 3, 8};
  EXPECT_EQ(error_of("conv2d", {{4, 3}, w}),
            "conv2d: operand 'x' (a) of shape [4, 3]; expected rank 4, [N, H, W, C]");
  EXPECT_EQ(error_of("conv2d", {x, w}, {}, DType::uint8),
            "conv2d: operand 'x' (a) of type uint8; expected float32");
  EXPECT_EQ(error_of("conv2d", {{2, 0, 4, 3}, w}),
            "conv2d: operand 'x' (a) of shape [2, 0, 4, 3]; expected [N, H, W, C] without an empty "
            "dimension");
  EXPECT_EQ(error_of("conv2d", {x, {3, 3, 4, 8}}),
            "conv2d: operand 'weight' (b) of shape [3, 3, 4, 8] for an input of 3 channels; "
            "expected [KH, KW, 3, K]");
  EXPECT_EQ(error_of("conv2d", {x, w, {3}}),
            "conv2d: operand 'bias' (c) of shape [3]; expected [8], one for each output channel");
  EXPECT_EQ(error_of("conv2d", {x, {5, 3, 3, 8}}),
            "conv2d: kernel 5x3 larger than the padded input 4x4; expected a kernel that fits "
            "(hint: more padding, or fewer poolings and strides before it)");
  EXPECT_EQ(
      error_of("conv2d", {x, w}, {{"dilation", List{1, 2}}}),
      "conv2d: kernel 3x3 with dilation 1x2 larger than the padded input 4x4; expected a kernel "
      "that fits (hint: more padding, or fewer poolings and strides before it)");
  EXPECT_EQ(
      error_of("conv2d", {x, w}, {{"stride", List{0, 1}}}),
      "conv2d: stride=[0, 1]; expected two integers (rows, columns) of at least 1 and below 2^31");
  EXPECT_EQ(error_of("conv2d", {x, w}, {{"padding", List{0, -1}}}),
            "conv2d: padding=[0, -1]; expected two integers (rows, columns) of at least 0 and "
            "below 2^31");
  EXPECT_EQ(
      error_of("conv2d", {x, w}, {{"padding", List{1}}}),
      "conv2d: padding=[1]; expected two integers (rows, columns) of at least 0 and below 2^31");
  const std::int64_t huge = (std::int64_t{1} << 31) - 1;
  EXPECT_NE(error_of("conv2d", {x, w}, {{"padding", List{huge, huge}}}), "no error");
  EXPECT_NE(error_of("conv2d", {x, w}, {{"dilation", List{huge, huge}}}), "no error");
  EXPECT_EQ(
      error_of("conv2d_grad_input", {{2, 2, 3, 8}, w}, {{"size", List{4, 4}}}),
      "conv2d_grad_input: operand 'gradient' (a) of shape [2, 2, 3, 8]; expected [2, 2, 2, 8], "
      "as the convolution's output has");
  EXPECT_EQ(
      error_of("conv2d_grad_weight", {x, {1, 2, 2, 8}}, {{"kernel", List{3, 3}}}),
      "conv2d_grad_weight: operand 'gradient' (b) of shape [1, 2, 2, 8]; expected [2, 2, 2, 8], "
      "as the convolution's output has");
}

/// Row products keep their taps' addresses on the stack; the weight gradient has no such limit.
TEST(Conv2d, ManyTapsReachTheGemmWhereTheyMay) {
  const auto kernels_of = [](std::string_view op, const Case& t) {
    OpHarness harness;
    graph::Attributes attributes = t.attributes();
    const ValueId x = harness.declare("x", DType::float32, t.x()),
                  w = harness.declare("w", DType::float32, t.weight()),
                  g = harness.declare("g", DType::float32, t.y());
    if (op == "conv2d") harness.op(op, {x, w}, attributes);
    if (op == "conv2d_grad_input") {
      attributes.set("size", std::vector{t.h, t.w});
      harness.op(op, {g, w}, attributes);
    }
    if (op == "conv2d_grad_weight") {
      attributes.set("kernel", std::vector{t.kh, t.kw});
      harness.op(op, {x, g}, attributes);
    }
    return harness.cpu_kernels();
  };
  using Names = std::vector<std::string>;
  const Case few{.n = 1, .h = 20, .w = 20, .c = 32, .k = 32, .kh = 16, .kw = 16},
      many{.n = 1, .h = 20, .w = 20, .c = 32, .k = 32, .kh = 17, .kw = 17};
  const Names both = kernels_of("conv2d", few);  // where LIBXSMM has kernels for this machine
  EXPECT_EQ(kernels_of("conv2d_grad_input", few), both);
  EXPECT_EQ(kernels_of("conv2d", many), Names{"plain"});
  EXPECT_EQ(kernels_of("conv2d_grad_input", many), Names{"plain"});
  EXPECT_EQ(kernels_of("conv2d_grad_weight", many), both);
}

/// A padding that no copy could hold leaves the plain kernel, and no arithmetic overflows on the
/// way.
TEST(Conv2d, WildPaddingIsServedByPlainLoops) {
  OpHarness harness;
  const std::int64_t huge = (std::int64_t{1} << 31) - 1;
  const auto size = std::vector{huge, huge};
  const ValueId y =
      harness
          .op("conv2d", {harness.random("x", {1, 3, 3, 2}), harness.random("w", {1, 1, 2, 3})},
              {{"padding", size}, {"stride", size}})
          .front();
  EXPECT_EQ(harness.graph()[y].shape, (Shape{1, 3, 3, 3}));
  EXPECT_EQ(harness.cpu_kernels(), std::vector<std::string>{"plain"});
  EXPECT_EQ(harness.run("plain"), runtime::StatusWord::ok);
}

/// Scratch is in proportion to the operands: a padding that would take hundreds of megabytes for a
/// few kilobytes leaves the plain kernel too.
TEST(Conv2d, LargePaddingIsServedByPlainLoops) {
  OpHarness harness;
  const auto size = std::vector<std::int64_t>{5000, 5000};
  harness.op("conv2d",
             {harness.declare("x", DType::float32, {1, 3, 3, 2}),
              harness.declare("w", DType::float32, {1, 1, 2, 32})},
             {{"padding", size}, {"stride", size}});
  EXPECT_EQ(harness.cpu_kernels(), std::vector<std::string>{"plain"});
}

}  // namespace
}  // namespace arenite::codelets::testing::convolution
