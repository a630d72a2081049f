#include <arenite/graph/target.hpp>
#include <arenite/runtime/program.hpp>

#include "codelets/bfloat16.hpp"
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

using runtime::Compute;

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = to_bfloat16(value);
  return values;
}

/// What the op writes to `result` with the plain float32 kernel, the factors being as they are
/// (`first`) and rounded beforehand (`second`).
std::pair<std::vector<float>, std::vector<float>> plain(OpHarness& h,
                                                        const std::vector<ValueId>& factors,
                                                        ValueId result) {
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  auto unrounded = h.read<float>(result);
  std::vector<std::vector<float>> kept;
  for (const ValueId id : factors) {
    kept.push_back(h.read<float>(id));
    h.write(id, rounded(kept.back()));
  }
  EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
  auto expected = h.read<float>(result);
  for (std::size_t i = 0; i < factors.size(); ++i) h.write(factors[i], kept[i]);
  return {std::move(unrounded), std::move(expected)};
}

void expect_far(const std::vector<float>& unrounded, const std::vector<float>& expected,
                double tol) {
  double largest = 0, differs = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max<double>(largest, std::fabs(expected[i]));
    differs = std::max<double>(differs, std::fabs(expected[i] - unrounded[i]));
  }
  EXPECT_GT(differs, 10 * tol * largest) << "rounding would not be noticed";
}

/// The kernels for bfloat16: one for each float32 kernel that takes the op, in their order.
std::vector<std::string> twins(const OpHarness& h) {
  std::vector<std::string> expected = h.cpu_kernels();
  for (std::string& name : expected) name += graph::bfloat16_suffix;
  EXPECT_EQ(h.cpu_kernels(Compute::bfloat16), expected);
  return expected;
}

/// Every bfloat16 kernel of the op against the plain float32 one on factors rounded beforehand.
void check(OpHarness& h, const std::vector<ValueId>& factors, ValueId result, double tol) {
  const auto [unrounded, expected] = plain(h, factors, result);
  expect_far(unrounded, expected, tol);
  std::vector<std::vector<float>> kept;
  for (const ValueId id : factors) kept.push_back(h.read<float>(id));
  for (const std::string& name : twins(h)) {
    SCOPED_TRACE(name);
    ASSERT_EQ(h.run(name), runtime::StatusWord::ok);
    expect_close(h.read<float>(result), expected, tol);
    for (std::size_t i = 0; i < factors.size(); ++i)
      EXPECT_EQ(h.read<float>(factors[i]), kept[i]) << "an operand was changed";
  }
}

TEST(RoundedFactors, OfDenseProducts) {
  OpHarness h(5);
  std::uniform_int_distribution<std::int64_t> some(1, 150), several(8, 150);
  for (int i = 0; i < 40; ++i) {
    // Where half of the outputs are cut off by ReLU, some must be left.
    const std::int64_t n = several(h.engine()), in = some(h.engine()), out = several(h.engine());
    SCOPED_TRACE("N=" + std::to_string(n) + " I=" + std::to_string(in) +
                 " O=" + std::to_string(out));
    const std::string tag = std::to_string(i);
    const auto x = h.random("x" + tag, {n, in}), w = h.random("w" + tag, {in, out}),
               b = h.random("b" + tag, {out}), g = h.random("g" + tag, {n, out}),
               y = h.random("y" + tag, {n, in}, -0.1f, 1);
    check(h, {x, w}, h.op("dense", {x, w, b}).front(), 4e-6);
    check(h, {x, w}, h.op("dense", {x, w}).front(), 4e-6);
    check(h, {x, w}, h.op("dense_relu", {x, w, b}).front(), 4e-6);
    check(h, {g, w}, h.op("dense_grad_input", {g, w}).front(), 4e-6);
    check(h, {g, w}, h.op("dense_grad_input_relu", {g, w, y}).front(), 4e-6);
    check(h, {x, g}, h.op("dense_grad_weight", {x, g}).front(), 4e-6);
    const std::int64_t more = some(h.engine());
    const auto x2 = h.random("more_x" + tag, {more, in}),
               g2 = h.random("more_g" + tag, {more, out});
    check(h, {x, g, x2, g2}, h.op("dense_grad_weight", {x, g, x2, g2}).front(), 4e-6);
    check(h, {x, g}, h.op("dense_grad_weight", {x, g}, {{"rows", std::vector{in / 2, in}}}).front(),
          4e-6);
    check(h, {x, w}, h.op("matmul", {x, w}).front(), 4e-6);
    check(h, {x, g}, h.op("matmul", {x, g}, {{"transpose_a", std::int64_t{1}}}).front(), 4e-6);
  }
}

/// Weight and velocity are float32's own: only what their gradient is made of is rounded.
TEST(RoundedFactors, OfUpdates) {
  OpHarness h(8);
  std::uniform_int_distribution<std::int64_t> some(1, 90);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t n = some(h.engine()), in = some(h.engine()), out = some(h.engine());
    const std::string tag = std::to_string(i);
    const auto x = h.random("x" + tag, {n, in}), g = h.random("g" + tag, {n, out}),
               w = h.random("w" + tag, {in, out}), v = h.random("v" + tag, {in, out}),
               rate = h.random("rate" + tag, {1}, 0.1f, 0.2f);
    const bool momentum = i % 2 == 1;
    h.op("dense_grad_weight_sgd", {w, rate, momentum ? v : ValueId{}, x, g},
         {{"momentum", momentum ? 0.9 : 0.0}, {"weight_decay", 0.01}});
    const auto weight = h.read<float>(w), velocity = h.read<float>(v);
    const auto restore = [&] { h.write(w, weight), h.write(v, velocity); };
    const auto xs = h.read<float>(x), gs = h.read<float>(g);
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    const auto unrounded = h.read<float>(w);
    restore();
    h.write(x, rounded(xs)), h.write(g, rounded(gs));
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    const auto expected = h.read<float>(w), expected_velocity = h.read<float>(v);
    expect_far(unrounded, expected, 4e-6);
    h.write(x, xs), h.write(g, gs);
    for (const std::string& name : twins(h)) {
      restore();
      ASSERT_EQ(h.run(name), runtime::StatusWord::ok);
      expect_close(h.read<float>(w), expected, 4e-6, name);
      expect_close(h.read<float>(v), expected_velocity, 4e-6, name);
    }
  }
}

TEST(RoundedFactors, LeaveTheBitsOfAWeightWithoutGradientAlone) {
  OpHarness h(9);
  const auto x = h.random("x", {16, 32}), g = h.random("g", {16, 48}, 0, 0),
             w = h.random("w", {32, 48}), rate = h.random("rate", {1}, 0.1f, 0.2f);
  h.op("dense_grad_weight_sgd", {w, rate, ValueId{}, x, g});
  const auto weight = h.read<float>(w);
  for (const std::string& name : twins(h)) {
    ASSERT_EQ(h.run(name), runtime::StatusWord::ok);
    EXPECT_EQ(h.read<float>(w), weight) << name;
  }
}

// What the rounded factors' products come to in double, told by no kernel.
TEST(RoundedFactors, HaveTheSumsOfDouble) {
  OpHarness h(6);
  constexpr std::int64_t n = 16, in = 784, out = 48;
  const auto x = h.random("x", {n, in}), w = h.random("w", {in, out});
  const auto y = h.op("dense", {x, w}).front();
  const auto xs = rounded(h.read<float>(x)), ws = rounded(h.read<float>(w));
  std::vector<double> expected(static_cast<std::size_t>(n * out));
  for (std::size_t s = 0; s < n; ++s) {
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t i = 0; i < in; ++i)
        expected[s * out + o] +=
            static_cast<double>(xs[s * in + i]) * static_cast<double>(ws[i * out + o]);
    }
  }
  for (const std::string& name : twins(h)) {
    ASSERT_EQ(h.run(name), runtime::StatusWord::ok);
    expect_close(h.read<float>(y), expected, 4e-6, name);
  }
}

TEST(RoundedFactors, OfConvolutions) {
  OpHarness h(7);
  struct Case {
    std::int64_t n, size, in, out;
    int halo;
  };
  int number = 0;
  for (const Case& c : {Case{3, 28, 1, 32, 1},
                        {2, 14, 32, 64, 1},
                        {2, 14, 16, 32, 0},
                        {1, 10, 3, 5, 2},
                        {4, 8, 6, 16, 0}}) {
    SCOPED_TRACE(std::to_string(number));
    const std::string tag = std::to_string(number++);
    const auto x = h.random("x" + tag, {c.n, c.size, c.size, c.in}, -1, 1, c.halo),
               w = h.random("w" + tag, {3, 3, c.in, c.out}), b = h.random("b" + tag, {c.out}),
               g = h.random("g" + tag, {c.n, c.size, c.size, c.out}, -1, 1, c.halo),
               pooled = h.random("p" + tag, {c.n, c.size / 2, c.size / 2, c.out});
    const graph::Attributes same{{"padding", std::vector<std::int64_t>{1, 1}}};
    const auto with = [&](const char* name, std::vector<std::int64_t> value) {
      graph::Attributes all = same;
      all.set(name, std::move(value));
      return all;
    };
    check(h, {x, w}, h.op("conv2d", {x, w, b}, same).front(), 1e-5);
    check(h, {g, w}, h.op("conv2d_grad_input", {g, w}, with("size", {c.size, c.size})).front(),
          1e-5);
    check(h, {x, g}, h.op("conv2d_grad_weight", {x, g}, with("kernel", {3, 3})).front(), 1e-5);
    check(h, {x, w}, h.op("conv2d_relu", {x, w, b}, same).front(), 1e-5);
    check(h, {g, w},
          h.op("conv2d_grad_input_relu", {g, w, x}, with("size", {c.size, c.size})).front(), 1e-5);
    const auto fused = h.op("conv2d_relu_max_pool2d", {x, w, b}, same);
    check(h, {x, w}, fused[0], 1e-5);
    check(h, {pooled, w},
          h.op("conv2d_relu_max_pool2d_grad_input_relu", {pooled, fused[1], w, x},
               with("size", {c.size, c.size}))
              .front(),
          1e-5);
    check(h, {pooled, w},
          h.op("conv2d_relu_max_pool2d_grad_input", {pooled, fused[1], w},
               with("size", {c.size, c.size}))
              .front(),
          1e-5);
    const auto sums =
        h.op("conv2d_relu_max_pool2d_grad_weight", {x, pooled, fused[1]}, with("kernel", {3, 3}));
    check(h, {x, pooled}, sums[0], 1e-5);
    check(h, {x, pooled}, sums[1], 1e-5);
  }
}

bool has_factors(const std::string& op) {
  return std::ranges::any_of(operators().at(op)->operands, &graph::OperandSchema::factor);
}

/// One that was forgotten would go on in float32, unnoticed.
TEST(RoundedFactors, AreSaidOfEveryOperatorThatMultipliesMatrices) {
  std::size_t products = 0;
  for (const std::string& op : operators().names()) {
    const auto definition = operators().at(op);
    // The JIT is a library for products of matrices.
    if (std::ranges::any_of(kernels().find(op), &Kernel::jit)) {
      ++products;
      EXPECT_TRUE(has_factors(op)) << op;
    }
    // What does the work of such an operator multiplies as it does.
    if (const auto* sum = std::get_if<graph::SumOf>(&definition->does)) {
      EXPECT_EQ(has_factors(op), has_factors(sum->of)) << op;
    }
    if (const auto* chain = std::get_if<graph::ChainOf>(&definition->does)) {
      EXPECT_EQ(has_factors(op), std::ranges::any_of(chain->operators, has_factors)) << op;
    }
  }
  EXPECT_GT(products, 8u);
}

TEST(RoundedFactors, HaveAKernelForEachFloat32One) {
  for (const std::string& op : operators().names()) {
    std::vector<std::string> expected, found;
    for (const Kernel& kernel : kernels().find(op)) {
      if (kernel.device != DeviceKind::cpu) continue;
      if (kernel.compute == Compute::bfloat16) found.push_back(kernel.name);
      if (kernel.compute == Compute::float32 && has_factors(op))
        expected.push_back(kernel.name + std::string(graph::bfloat16_suffix));
    }
    EXPECT_EQ(found, expected) << op;
  }
}

struct Selecting {
  graph::Graph graph;
  graph::Builder builder{graph, operators()};

  ValueId declare(const char* name, DType type) {
    return builder.declare(name, type, {4, 4}, graph::StorageClass::input);
  }
  /// The kernel of the op that was added last.
  std::string select(Compute compute) {
    const OpView op(graph, graph[graph[graph::Graph::body].ops.back()]);
    return runtime::kernel_selector(kernels(), {.compute = compute})->choose(op);
  }
};

TEST(RoundedFactors, AreSelectedWhereAskedForAndNeverReplaced) {
  Selecting s;
  const ValueId x = s.declare("x", DType::float32), y = s.declare("y", DType::float32);
  s.builder.add("dense", {x, y});
  const std::string kernel = s.select(Compute::float32);
  EXPECT_FALSE(kernel.ends_with(graph::bfloat16_suffix));
  EXPECT_EQ(s.select(Compute::bfloat16), kernel + std::string(graph::bfloat16_suffix));
  s.builder.add("relu", {x});
  EXPECT_EQ(s.select(Compute::bfloat16), s.select(Compute::float32));
  const ValueId a = s.declare("a", DType::float64), b = s.declare("b", DType::float64);
  s.builder.add("matmul", {a, b});
  EXPECT_EQ(s.select(Compute::float32), "plain");
  expect_error([&] { s.select(Compute::bfloat16); },
               "matmul: no kernel for operands [4, 4], [4, 4]; expected a registered kernel that "
               "supports them on the CPU in bfloat16");
}

TEST(RoundedFactors, OfTensorCoresAreNotTheCPUs) {
  Selecting s;
  const ValueId x = s.declare("x", DType::float32), y = s.declare("y", DType::float32);
  s.builder.add("relu", {x});
  EXPECT_EQ(s.select(Compute::tfloat32), s.select(Compute::float32));
  s.builder.add("dense", {x, y});
  expect_error(
      [&] { s.select(Compute::tfloat32); },
      "dense: products in tfloat32 on the CPU; expected float32 or bfloat16 (hint: TF32 is what "
      "tensor cores of GPUs multiply)");
}

}  // namespace
}  // namespace arenite::codelets::testing
