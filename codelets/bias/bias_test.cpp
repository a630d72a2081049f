#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& bias) {
  std::vector<double> y = x;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  return y;
}

std::vector<double> summed(const std::vector<double>& gradient, std::size_t channels) {
  std::vector<double> sums(channels);
  for (std::size_t i = 0; i < gradient.size(); ++i) sums[i % channels] += gradient[i];
  return sums;
}

std::vector<Shape> shapes(OpHarness& h) {
  std::vector<Shape> all{{1},       {64},      {100},    {64, 10}, {1, 1},
                         {3, 5, 7}, {64, 512}, {2, 130}, {0, 5},   {1000, 3}};
  std::uniform_int_distribution<int> size(1, 12), channels(1, 90);
  for (int i = 0; i < 30; ++i) {
    all.push_back({size(h.engine()), size(h.engine()), size(h.engine()), channels(h.engine())});
  }
  return all;
}

TEST(Bias, MatchesTheReferenceForwardAndBackward) {
  OpHarness h(7);
  std::uniform_int_distribution<int> halo(0, 2);
  int number = 0;
  for (const Shape& shape : shapes(h)) {
    SCOPED_TRACE(to_string(shape));
    const std::string tag = std::to_string(number++);
    const int in = shape.rank() == 4 ? halo(h.engine()) : 0,
              out = shape.rank() == 4 ? halo(h.engine()) : 0;
    const auto x = h.random("x" + tag, shape, -1, 1, in), b = h.random("b" + tag, {shape.at(-1)});
    const auto y = h.op("bias", {x, b}).front();
    h.set_halo(y, out);
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    const auto bias = as_doubles(h.read<float>(b));
    expect_close(h.read<float>(y), reference(as_doubles(h.read<float>(x)), bias), 1e-6);
    if (out > 0) {
      EXPECT_TRUE(h.halo_is_zero(y));
    }

    const auto g = h.random("g" + tag, shape, -1, 1, in);
    const auto gradients = h.gradient({g}, {true, true});
    EXPECT_EQ(gradients[0], g) << "x's gradient is the result's";
    expect_close(h.read<float>(gradients[1]), summed(as_doubles(h.read<float>(g)), bias.size()),
                 1e-6);
  }
}

TEST(Bias, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const auto x = h.random("x", {3, 2, 2, 4}), b = h.random("b", {4}),
             g = h.random("g", {3, 2, 2, 4});
  h.op("bias", {x, b});
  const auto db = h.gradient({g}, {false, true})[1];
  const auto input = as_doubles(h.read<float>(x));
  const auto expected =
      numeric_gradient([&](const std::vector<double>& bias) { return reference(input, bias); },
                       as_doubles(h.read<float>(b)), as_doubles(h.read<float>(g)));
  expect_close(h.read<float>(db), expected, 1e-6);
}

TEST(Bias, SumsManyPixelsAccurately) {
  OpHarness h(11);
  const auto g = h.random("g", {64, 128, 128, 4}, 0, 1);
  const auto db = h.op("bias_grad", {g}).front();
  h.run("plain");
  expect_close(h.read<float>(db), summed(as_doubles(h.read<float>(g)), 4), 2e-7);
}

TEST(Bias, RunsInPlace) {
  OpHarness h;
  for (int halo : {0, 2}) {
    const std::string tag = std::to_string(halo);
    const auto x = h.random("x" + tag, {2, 3, 4, 5}, -1, 1, halo), b = h.random("b" + tag, {5});
    const auto expected = reference(as_doubles(h.read<float>(x)), as_doubles(h.read<float>(b)));
    const auto y = h.op("bias", {x, b}).front();
    h.set_halo(y, halo);
    h.in_place(0, 0);
    h.run("plain");
    expect_close(h.read<float>(y), expected, 1e-6);
  }
}

TEST(Bias, NaNReachesOnlyItsChannel) {
  OpHarness h;
  const auto g = h.declare("g", DType::float32, {2, 3});
  h.write<float>(g, {1, std::numeric_limits<float>::quiet_NaN(), 3, 4, 5, 6});
  const auto db = h.op("bias_grad", {g}).front();
  h.run("plain");
  const auto sums = h.read<float>(db);
  EXPECT_EQ(sums[0], 5);
  EXPECT_TRUE(std::isnan(sums[1]));
  EXPECT_EQ(sums[2], 9);
}

TEST(Bias, BuildsOnlyWantedGradients) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), b = h.random("b", {3});
  h.op("bias", {x, b});
  const std::size_t ops = h.graph().op_count();
  const auto gradients = h.gradient({x}, {true, false});
  EXPECT_FALSE(gradients[1]);
  EXPECT_EQ(h.graph().op_count(), ops);
}

TEST(Bias, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), b = h.random("b", {2}), s = h.random("s", {});
  const auto d = h.declare("d", DType::float64, {3});
  expect_error(
      [&] {
        h.op("bias", {x, b});
      },
      "bias: operand 'bias' (b) of shape [2]; expected [3], the last axis of x [2, 3]");
  expect_error(
      [&] {
        h.op("bias", {x, d});
      },
      "bias: operand 'bias' (d) of type float64; expected float32");
  expect_error([&] { h.op("bias_grad", {s}); },
               "bias_grad: operand 'gradient' (s) of shape []; expected rank 1 or more, [..., C]");
}

}  // namespace
}  // namespace arenite::codelets::testing
