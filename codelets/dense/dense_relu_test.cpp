#include "codelets/dense/reference.hpp"
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

/// dense_relu and dense_grad_input_relu on every kernel, against double.
void check_relu(OpHarness& h, Sizes s, bool with_bias, const std::string& tag) {
  SCOPED_TRACE("N=" + std::to_string(s.n) + " I=" + std::to_string(s.i) +
               " O=" + std::to_string(s.o));
  const auto x = h.random("x" + tag, {s.n, s.i}), w = h.random("w" + tag, {s.i, s.o}),
             b = h.random("b" + tag, {s.o}), g = h.random("g" + tag, {s.n, s.o}),
             before = h.random("before" + tag, {s.n, s.i}, 0, 1);
  // Half of what the ReLU before let through: nothing.
  auto outputs = h.read<float>(before);
  for (float& v : outputs) v = v < 0.5f ? 0 : v;
  h.write(before, outputs);
  const auto ws = as_doubles(h.read<float>(w)), gs = as_doubles(h.read<float>(g));
  auto operands = std::vector{x, w};
  if (with_bias) operands.push_back(b);
  auto expected = reference(as_doubles(h.read<float>(x)), ws,
                            with_bias ? as_doubles(h.read<float>(b)) : std::vector<double>{}, s);
  for (double& v : expected) v = std::max(v, 0.0);
  const auto y = h.op("dense_relu", operands).front();
  for (const std::string& kernel : h.cpu_kernels()) {
    ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
    expect_close(h.read<float>(y), expected, 2e-6, kernel);
  }
  auto dx = reference(gs, transposed(ws, s.i, s.o), {}, {s.n, s.o, s.i});
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = outputs[i] > 0 ? dx[i] : 0;
  const auto got = h.op("dense_grad_input_relu", {g, w, before}).front();
  for (const std::string& kernel : h.cpu_kernels()) {
    ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
    expect_close(h.read<float>(got), dx, 2e-6, kernel);
    const auto values = h.read<float>(got);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (outputs[i] == 0) {
        ASSERT_EQ(values[i], 0) << kernel << " " << i;
      }
    }
  }
}

TEST(DenseRelu, MatchesTheReference) {
  OpHarness h(43);
  int number = 0;
  for (Sizes s : {Sizes{64, 784, 512},
                  {64, 512, 10},
                  {1, 676, 10},
                  {10, 676, 10},
                  {5, 4200, 3},
                  {1, 1, 1},
                  {65, 67, 71},
                  {16, 64, 17},
                  {16, 130, 200},
                  {5, 120, 400}}) {
    check_relu(h, s, number % 2 == 0, std::to_string(number) + "n");
    ++number;
  }
  std::uniform_int_distribution<int> samples(1, 40), features(1, 270);
  for (int i = 0; i < 60; ++i) {
    check_relu(h, {samples(h.engine()), features(h.engine()), features(h.engine())}, i % 2 == 0,
               std::to_string(i));
  }
}

TEST(DenseRelu, KeepsNaN) {
  OpHarness h;
  for (const std::int64_t samples : {3, 20}) {
    const std::string tag = std::to_string(samples);
    const auto x = h.random("x" + tag, {samples, 20}), w = h.random("w" + tag, {20, 100});
    auto values = h.read<float>(x);
    values[25] = std::numeric_limits<float>::quiet_NaN();
    h.write(x, values);
    const auto y = h.op("dense_relu", {x, w}).front();
    for (const std::string& kernel : h.cpu_kernels()) {
      h.run(kernel);
      const auto out = h.read<float>(y);
      for (std::size_t i = 0; i < out.size(); ++i)
        EXPECT_EQ(std::isnan(out[i]), i / 100 == 1) << kernel;
    }
    // A NaN that the ReLU made lets the gradient through, as relu_grad does.
    const auto g = h.random("g" + tag, {samples, 100});
    const auto dx = h.op("dense_grad_input_relu", {g, w, x}).front();
    for (const std::string& kernel : h.cpu_kernels()) {
      h.run(kernel);
      EXPECT_NE(h.read<float>(dx)[25], 0) << kernel;
    }
  }
}

TEST(DenseRelu, GradientAgreesWithTheTwoOps) {
  OpHarness h(41);
  const auto x = h.random("x", {3, 20}), w = h.random("w", {20, 30}), b = h.random("b", {30}),
             g = h.random("g", {3, 30});
  h.op("dense_relu", {x, w, b});
  h.run("plain");
  const auto fused = h.gradient({g}, {true, true, true});
  const auto product = h.op("dense", {x, w, b}).front();
  h.run("plain");
  h.op("relu", {product});
  h.run("fused");
  const auto of_product = h.gradient({g}, {true}).front();
  h.op("dense", {x, w, b});
  const auto apart = h.gradient({of_product}, {true, true, true});
  for (std::size_t i = 0; i < 3; ++i)
    expect_close(h.read<float>(fused[i]), h.read<float>(apart[i]), 2e-6);
  // Nothing is appended when nothing is wanted.
  h.op("dense_relu", {x, w});
  const std::size_t ops = h.graph().op_count();
  h.gradient({g}, {false, false});
  EXPECT_EQ(h.graph().op_count(), ops);
}

}  // namespace
}  // namespace arenite::codelets::testing
