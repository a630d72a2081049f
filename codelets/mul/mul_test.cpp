#include "codelets/pairwise_testing.hpp"

namespace arenite::codelets::testing {
namespace {

const Pairwise product{"mul", [](double a, double b) { return a * b; },
                       [](double, double b) { return b; }, [](double a, double) { return a; }};

TEST(Mul, RepeatsItsRightOperandAlongAnyAxes) { check_every_shape(product); }

TEST(Mul, GradientAgreesWithCentralDifferences) { check_against_differences(product); }

TEST(Mul, RefusesWhatDoesNotMatch) { check_refusals("mul"); }

TEST(Mul, BuildsOnlyWantedGradients) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), row = h.random("row", {1, 3}), g = h.random("g", {2, 3});
  h.op("mul", {a, row});
  const std::size_t ops = h.graph().op_count();
  EXPECT_FALSE(h.gradient({ValueId{}}, {true, true})[0]);
  EXPECT_EQ(h.graph().op_count(), ops);
  EXPECT_FALSE(h.gradient({g}, {true, false})[1]);
  EXPECT_EQ(h.graph().op_count(), ops + 1);
  EXPECT_FALSE(h.gradient({g}, {false, true})[0]);
  EXPECT_EQ(h.graph().op_count(), ops + 3);  // a product and its sums
}

TEST(Mul, ASquareHasBothGradients) {
  OpHarness h;
  const auto x = h.random("x", {50}), g = h.random("g", {50});
  const auto y = h.op("mul", {x, x}).front();
  h.run("plain");
  const auto values = h.read<float>(x), squares = h.read<float>(y);
  const auto gradients = h.gradient({g}, {true, true});
  const auto weights = h.read<float>(g), first = h.read<float>(gradients[0]),
             second = h.read<float>(gradients[1]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(squares[i], values[i] * values[i]);
    EXPECT_EQ(first[i], weights[i] * values[i]);
    EXPECT_EQ(second[i], first[i]);
  }
}

TEST(Mul, LetsNaNThrough) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  OpHarness h;
  const auto a = h.declare("a", DType::float32, {2, 2}), b = h.declare("b", DType::float32, {1, 2});
  h.write<float>(a, {nan, 2, 3, 4});
  h.write<float>(b, {0, nan});
  const auto y = h.op("mul", {a, b}).front();
  h.run("plain");
  const auto products = h.read<float>(y);
  EXPECT_TRUE(std::isnan(products[0]));
  EXPECT_TRUE(std::isnan(products[1]));
  EXPECT_EQ(products[2], 0);
  EXPECT_TRUE(std::isnan(products[3]));
}

}  // namespace
}  // namespace arenite::codelets::testing
