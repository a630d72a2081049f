#include "codelets/dense/reference.hpp"
#include "codelets/testing.hpp"
#include "src/expr/simd/isa.hpp"

namespace arenite::codelets::testing {
namespace {

/// Forward and all three gradients on every kernel, against double.
void check(OpHarness& h, Sizes s, bool with_bias, const std::string& tag) {
  SCOPED_TRACE("N=" + std::to_string(s.n) + " I=" + std::to_string(s.i) +
               " O=" + std::to_string(s.o));
  const auto x = h.random("x" + tag, {s.n, s.i}), w = h.random("w" + tag, {s.i, s.o}),
             b = h.random("b" + tag, {s.o}), g = h.random("g" + tag, {s.n, s.o});
  const auto xs = as_doubles(h.read<float>(x)), ws = as_doubles(h.read<float>(w)),
             bs = as_doubles(h.read<float>(b)), gs = as_doubles(h.read<float>(g));
  auto operands = std::vector{x, w};
  if (with_bias) operands.push_back(b);
  const auto y = h.op("dense", operands).front();
  const auto expected = reference(xs, ws, with_bias ? bs : std::vector<double>{}, s);
  const auto dx = reference(gs, transposed(ws, s.i, s.o), {}, {s.n, s.o, s.i});
  const auto dw = reference(transposed(xs, s.n, s.i), gs, {}, {s.i, s.n, s.o});
  const auto db =
      reference(std::vector<double>(static_cast<std::size_t>(s.n), 1), gs, {}, {1, s.n, s.o});
  const auto names = h.cpu_kernels();
  EXPECT_EQ(names.back(), "plain");
  for (const std::string& kernel : names) {
    SCOPED_TRACE(kernel);
    ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
    expect_close(h.read<float>(y), expected, 2e-6);
    const auto gradients = h.gradient({g}, std::vector<bool>(operands.size(), true), kernel);
    expect_close(h.read<float>(gradients[0]), dx, 2e-6);
    expect_close(h.read<float>(gradients[1]), dw, 2e-6);
    if (with_bias) expect_close(h.read<float>(gradients[2]), db, 2e-6);
  }
}

TEST(Dense, MatchesTheReferenceForNamedShapes) {
  OpHarness h(17);
  int number = 0;
  for (Sizes s : {Sizes{64, 784, 512},
                  {32, 784, 512},
                  {64, 512, 10},
                  {1, 676, 10},
                  {10, 676, 10},
                  {64, 676, 10},
                  {32, 3136, 128},
                  {5, 4200, 3},
                  {1, 1, 1},
                  {2, 1, 1},
                  {65, 67, 71},
                  {64, 64, 64},
                  {16, 64, 17},
                  {16, 130, 200},
                  {128, 127, 129},
                  {1000, 12, 10},
                  {4100, 3, 5}}) {
    check(h, s, number % 2 == 0, std::to_string(number) + "n");
    ++number;
  }
}

TEST(Dense, MatchesTheReferenceForRandomShapes) {
  OpHarness h(19);
  std::uniform_int_distribution<int> samples(1, 70), features(1, 200);
  for (int i = 0; i < 60; ++i) {
    // Every third one with whole vectors of samples.
    const int n = i % 3 == 0 ? 16 * (1 + i / 20) : samples(h.engine());
    check(h, {n, features(h.engine()), features(h.engine())}, i % 2 == 0, std::to_string(i));
  }
}

TEST(Dense, MatchesTheReferenceForFewSamples) {
  OpHarness h(29);
  std::uniform_int_distribution<int> samples(1, 17), features(1, 270);
  for (int i = 0; i < 60; ++i) {
    check(h, {samples(h.engine()), features(h.engine()), features(h.engine())}, i % 2 == 0,
          std::to_string(i));
  }
}

TEST(Dense, SupportsTheFastKernelWhereTheMachineDoes) {
  OpHarness h;
  const auto has = [&](const char* kernel) {
    const auto names = h.cpu_kernels();
    return std::find(names.begin(), names.end(), kernel) != names.end();
  };
  h.op("dense", {h.random("x", {64, 784}), h.random("w", {784, 512})});
  const bool fast = h.cpu_kernels().front() == "xsmm";
  h.op("dense", {h.random("x2", {3, 7}), h.random("w2", {7, 10})});
  EXPECT_EQ(has("xsmm"), fast);
  EXPECT_EQ(has("direct"), expr::isa() != "baseline");
}

TEST(Dense, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const Sizes s{3, 5, 4};
  const auto x = h.random("x", {s.n, s.i}), w = h.random("w", {s.i, s.o}), b = h.random("b", {s.o}),
             g = h.random("g", {s.n, s.o});
  const auto xs = as_doubles(h.read<float>(x)), ws = as_doubles(h.read<float>(w)),
             bs = as_doubles(h.read<float>(b)), gs = as_doubles(h.read<float>(g));
  h.op("dense", {x, w, b});
  const auto got = h.gradient({g}, {true, true, true});
  using Doubles = std::vector<double>;
  const auto by_x =
      numeric_gradient([&](const Doubles& v) { return reference(v, ws, bs, s); }, xs, gs);
  const auto by_w =
      numeric_gradient([&](const Doubles& v) { return reference(xs, v, bs, s); }, ws, gs);
  const auto by_b =
      numeric_gradient([&](const Doubles& v) { return reference(xs, ws, v, s); }, bs, gs);
  expect_close(h.read<float>(got[0]), by_x, 1e-6);
  expect_close(h.read<float>(got[1]), by_w, 1e-6);
  expect_close(h.read<float>(got[2]), by_b, 1e-6);
}

TEST(Dense, WeightGradientSumsItsPairs) {
  OpHarness h(23);
  const std::int64_t inputs = 130, outputs = 70;
  for (const std::vector<std::int64_t>& lanes :
       {std::vector<std::int64_t>{5, 5}, {32, 32}, {3, 1, 2}, {16, 16, 16, 16}}) {
    std::vector<ValueId> operands;
    std::vector<double> expected(static_cast<std::size_t>(inputs * outputs));
    for (const std::int64_t n : lanes) {
      const std::string tag = std::to_string(h.graph().value_count());
      const auto x = h.random("x" + tag, {n, inputs}), g = h.random("g" + tag, {n, outputs});
      operands.insert(operands.end(), {x, g});
      const auto one = reference(transposed(as_doubles(h.read<float>(x)), n, inputs),
                                 as_doubles(h.read<float>(g)), {}, {inputs, n, outputs});
      for (std::size_t i = 0; i < one.size(); ++i) expected[i] += one[i];
    }
    const auto dw = h.op("dense_grad_weight", operands).front();
    for (const std::string& kernel : h.cpu_kernels()) {
      ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
      expect_close(h.read<float>(dw), expected, 2e-6, kernel);
    }
  }
}

TEST(Dense, WeightGradientGivesSomeRowsWithTheBitsOfAll) {
  OpHarness h(24);
  const std::int64_t inputs = 200, outputs = 70;
  const std::vector operands{h.random("x", {9, inputs}), h.random("g", {9, outputs}),
                             h.random("x2", {16, inputs}), h.random("g2", {16, outputs})};
  h.op("dense_grad_weight", operands);
  for (const std::string& kernel : h.cpu_kernels()) {
    const auto all = h.op("dense_grad_weight", operands).front();
    h.run(kernel);
    const auto whole = h.read<float>(all);
    for (const auto& [begin, end] : {std::pair{0, 64}, {64, 192}, {128, 200}, {192, 200}}) {
      const auto part =
          h.op("dense_grad_weight", operands, {{"rows", std::vector<std::int64_t>{begin, end}}})
              .front();
      ASSERT_EQ(h.graph()[part].shape, Shape({end - begin, outputs}));
      ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
      EXPECT_EQ(h.read<float>(part),
                std::vector<float>(whole.begin() + begin * outputs, whole.begin() + end * outputs))
          << kernel << " " << begin << " to " << end;
    }
    // Tiles that begin elsewhere may round in another way.
    const auto part =
        h.op("dense_grad_weight", operands, {{"rows", std::vector<std::int64_t>{7, 142}}}).front();
    h.run(kernel);
    expect_close(h.read<float>(part),
                 std::vector<float>(whole.begin() + 7 * outputs, whole.begin() + 142 * outputs),
                 2e-6);
  }
}

TEST(Dense, EmptyAxes) {
  OpHarness h;
  const auto b = h.random("b", {3});
  const auto y = h.op("dense", {h.random("x", {2, 0}), h.random("w", {0, 3}), b}).front();
  EXPECT_EQ(h.cpu_kernels().back(), "plain");
  for (const std::string& kernel : h.cpu_kernels()) {
    EXPECT_NE(kernel, "xsmm");
    h.run(kernel);
  }
  const auto bias = h.read<float>(b), out = h.read<float>(y);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], bias[i % 3]);
  // An empty pair among full ones adds nothing.
  const auto x = h.random("x3", {3, 4}), g = h.random("g3", {3, 5});
  const auto two = h.op("dense_grad_weight", {x, g, x, g}).front();
  h.run("plain");
  const auto twice = h.read<float>(two);
  const auto three =
      h.op("dense_grad_weight", {x, g, h.random("x4", {0, 4}), h.random("g4", {0, 5}), x, g})
          .front();
  for (const std::string& kernel : h.cpu_kernels()) {
    h.run(kernel);
    expect_close(h.read<float>(three), twice, 2e-6, kernel);
  }
  // No sample: a gradient of zeros.
  const auto dw =
      h.op("dense_grad_weight", {h.random("x0", {0, 4}), h.random("g0", {0, 3})}).front();
  h.run("plain");
  EXPECT_EQ(h.read<float>(dw), std::vector<float>(12, 0));
}

TEST(Dense, NaNStaysInItsRow) {
  OpHarness h;
  const auto x = h.random("x", {3, 20}), w = h.random("w", {20, 10});
  auto values = h.read<float>(x);
  values[25] = std::numeric_limits<float>::quiet_NaN();
  h.write(x, values);
  const auto y = h.op("dense", {x, w}).front();
  for (const std::string& kernel : h.cpu_kernels()) {
    h.run(kernel);
    const auto out = h.read<float>(y);
    for (std::size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(std::isnan(out[i]), i / 10 == 1) << kernel;
  }
}

TEST(Dense, BuildsOnlyWantedGradients) {
  OpHarness h;
  h.op("dense", {h.random("x", {2, 3}), h.random("w", {3, 4})});
  const auto g = h.random("g", {2, 4});
  const std::size_t ops = h.graph().op_count();
  const auto gradients = h.gradient({g}, {false, true});
  EXPECT_FALSE(gradients[0]);
  EXPECT_EQ(h.graph().op_count(), ops + 1);
  EXPECT_EQ(h.graph()[graph::OpId(ops)].name(), "dense_grad_weight");
}

TEST(Dense, CountsItsWork) {
  OpHarness h;
  h.op("dense", {h.random("x", {64, 784}), h.random("w", {784, 512})});
  const OpView op(h.graph(), h.graph()[graph::OpId(0)]);
  const graph::Cost cost = op.op().definition->cost(op);
  EXPECT_DOUBLE_EQ(cost.flops, 2.0 * 64 * 784 * 512);
  EXPECT_DOUBLE_EQ(cost.bytes, 4.0 * (64 * 784 + 784 * 512 + 64 * 512));
}

TEST(Dense, CountsTheWorkOfSomeRows) {
  OpHarness h;
  const std::vector operands{h.random("x", {64, 784}), h.random("g", {64, 512}),
                             h.random("x2", {32, 784}), h.random("g2", {32, 512})};
  const auto cost = [&](std::vector<std::int64_t> rows) {
    h.op("dense_grad_weight", operands, {{"rows", std::move(rows)}});
    const OpView op(h.graph(), h.graph()[h.graph()[graph::Graph::body].ops.back()]);
    return op.op().definition->cost(op);
  };
  EXPECT_DOUBLE_EQ(cost({}).flops, 2.0 * 96 * 784 * 512);
  EXPECT_DOUBLE_EQ(cost({}).bytes, 4.0 * (96 * (784 + 512) + 784 * 512));
  EXPECT_DOUBLE_EQ(cost({64, 192}).flops, 2.0 * 96 * 128 * 512);
  EXPECT_DOUBLE_EQ(cost({64, 192}).bytes, 4.0 * (96 * (128 + 512) + 128 * 512));
}

TEST(Dense, TakesABiasThatIsARow) {
  OpHarness h;
  const auto x = h.random("x", {3, 5}), w = h.random("w", {5, 4}), b = h.random("b", {4}),
             row = h.declare("row", DType::float32, {1, 4}), g = h.random("g", {3, 4});
  h.write(row, h.read<float>(b));
  const auto y = h.op("dense", {x, w, b}).front();
  for (const std::string& kernel : h.cpu_kernels()) {
    h.run(kernel);
    const auto expected = h.read<float>(y);
    const auto of_b = h.read<float>(h.gradient({g}, {false, false, true}, kernel)[2]);
    const auto same = h.op("dense", {x, w, row}).front();
    h.run(kernel);
    // Sanitizers keep the compiler from rounding the same way wherever rows lie.
    expect_close(h.read<float>(same), expected, 2e-6);
    const auto of_row = h.gradient({g}, {false, false, true}, kernel)[2];
    EXPECT_EQ(h.graph()[of_row].shape, (Shape{1, 4}));
    expect_close(h.read<float>(of_row), of_b, 2e-6);
    h.op("dense", {x, w, b});
  }
}

TEST(Dense, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), w = h.random("w", {4, 5}),
             image = h.random("image", {2, 3, 4, 5}), b = h.random("b", {4}),
             ok = h.random("ok", {3, 5});
  const auto labels = h.declare("labels", DType::int32, {2, 3});
  expect_error(
      [&] {
        h.op("dense", {x, w});
      },
      "dense: operand 'weight' (w) of shape [4, 5]; expected [3, 5], [I, O] for x [2, 3]");
  expect_error(
      [&] {
        h.op("dense", {image, w});
      },
      "dense: operand 'x' (image) of shape [2, 3, 4, 5]; expected rank 2, [N, I]");
  expect_error(
      [&] {
        h.op("dense", {labels, w});
      },
      "dense: operand 'x' (labels) of type int32; expected float32");
  expect_error(
      [&] {
        h.op("dense", {x, ok, b});
      },
      "dense: operand 'bias' (b) of shape [4]; expected [5], [O] of weight [3, 5]");
  expect_error(
      [&] {
        h.op("dense_grad_input", {x, w});
      },
      "dense_grad_input: operand 'weight' (w) of shape [4, 5]; expected [4, 3], [I, O] for "
      "gradient [2, 3]");
  expect_error(
      [&] {
        h.op("dense_grad_weight", {x, w});
      },
      "dense_grad_weight: operand 'gradient' (w) of shape [4, 5]; expected [2, 5], [N, O] for x "
      "[2, 3]");
  const auto pair = h.random("pair", {2, 5});
  expect_error(
      [&] {
        h.op("dense_grad_weight", {x, pair, w, pair});
      },
      "dense_grad_weight: operand 'x' (w) of shape [4, 5]; expected [4, 3], [N, I] like the first "
      "x "
      "[2, 3]");
  expect_error(
      [&] {
        h.op("dense_grad_weight", {x, pair, x, ok});
      },
      "dense_grad_weight: operand 'gradient' (ok) of shape [3, 5]; expected [2, 5], [N, O] for x "
      "[2, 3]");
  expect_error(
      [&] {
        h.op("dense_grad_weight", {x, pair, x});
      },
      "dense_grad_weight: 3 operands; expected 2 (x, gradient, …), and any number of the last 2 "
      "again");
  const auto rate = h.random("rate", {1}), weight = h.random("weight", {3, 5});
  expect_error(
      [&] {
        h.op("dense_grad_weight_sgd", {weight, rate, x, pair});
      },
      "dense_grad_weight_sgd: 4 operands; expected weight, learning_rate, velocity or none, and "
      "pairs of x and gradient");
  expect_error(
      [&] {
        h.op("dense_grad_weight_sgd", {w, rate, ValueId{}, x, pair});
      },
      "dense_grad_weight_sgd: operand 'weight' (w) of shape [4, 5]; expected [3, 5], the shape of "
      "the gradient");
  expect_error(
      [&] {
        h.op("dense_grad_weight_sgd", {weight, rate, ValueId{}, x, pair}, {{"momentum", 0.9}});
      },
      "dense_grad_weight_sgd: momentum=0.9 without a velocity; expected operand 'velocity'");
  expect_error(
      [&] {
        h.op("dense_grad_input_relu", {pair, weight, w});
      },
      "dense_grad_input_relu: operand 'output' (w) of shape [4, 5]; expected [2, 3], the shape of "
      "the result");
  const auto rows = [&](std::vector<std::int64_t> range) {
    const std::string text = graph::to_string(graph::AttributeValue(range));
    expect_error(
        [&] {
          h.op("dense_grad_weight", {x, pair}, {{"rows", range}});
        },
        "dense_grad_weight: rows=" + text +
            "; expected none, or [begin, end) with 0 ≤ begin < end ≤ 3, the I of x [2, 3]");
  };
  rows({1});
  rows({-1, 2});
  rows({2, 2});
  rows({1, 4});
  rows({0, 1, 2});
}

}  // namespace
}  // namespace arenite::codelets::testing
