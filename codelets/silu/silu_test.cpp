#include "codelets/broadcast_testing.hpp"

namespace arenite::codelets::testing {
namespace {

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

std::vector<double> reference(const std::vector<double>& x) {
  std::vector<double> y;
  for (double v : x) y.push_back(v * sigmoid(v));
  return y;
}

double slope(double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }

/// Shapes of every rank, with the halos of x and of the result where the rank allows them.
struct Case {
  Shape shape;
  int in = 0, out = 0;
};

std::vector<Case> cases(OpHarness& h) {
  std::vector<Case> all{{{}},
                        {{1}},
                        {{17}},
                        {{5, 33}},
                        {{0, 3}},
                        {{2, 3, 4}},
                        {{1, 2, 1, 3, 2}},
                        {{2, 1, 2, 1, 2, 1, 2, 3}},
                        {{1, 1, 1, 1}, 1, 2}};
  std::uniform_int_distribution<int> size(1, 9);
  for (int i = 0; i < 30; ++i) {
    all.push_back({{size(h.engine()), size(h.engine()), size(h.engine()), size(h.engine())},
                   halo(h),
                   halo(h)});
  }
  return all;
}

template <class T>
void check(OpHarness& h, const Case& c, double tolerance) {
  SCOPED_TRACE(to_string(c.shape));
  const auto x = random_value<T>(h, c.shape, c.in);
  auto values = h.read<T>(x);
  for (T& v : values) v *= 5;
  h.write(x, values);
  const auto y = h.op("silu", {x}).front();
  h.set_halo(y, c.out);
  ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
  const auto input = as_doubles(values);
  expect_each_close(h.read<T>(y), reference(input), tolerance);
  if (c.out > 0) {
    EXPECT_TRUE(h.halo_is_zero<T>(y));
  }
  const auto g = random_value<T>(h, c.shape, c.out);
  const auto dx = h.gradient({g}, {true}).front();
  const auto weights = as_doubles(h.read<T>(g));
  std::vector<double> expected;
  for (std::size_t i = 0; i < input.size(); ++i) expected.push_back(weights[i] * slope(input[i]));
  expect_each_close(h.read<T>(dx), expected, tolerance);
  if (c.shape.elements() == 0) return;
  expect_close(h.read<T>(dx), numeric_gradient(reference, input, weights), 1e-6);
}

TEST(Silu, MatchesTheReferenceForwardAndBackward) {
  OpHarness h(9);
  for (const Case& c : cases(h)) {
    check<float>(h, c, 1e-6);
    check<double>(h, c, 1e-14);
  }
}

/// Relative to each value by itself.
TEST(Silu, IsExactForSmallAndLargeNumbers) {
  OpHarness h;
  std::vector<float> numbers;
  for (float v = -87; v < 200; v += 0.0131f) numbers.push_back(v);
  for (float v = 1; v > 1e-30f; v /= 3) numbers.insert(numbers.end(), {v, -v, 1 / v});
  const auto x = h.declare("x", DType::float32, {static_cast<std::int64_t>(numbers.size())});
  h.write(x, numbers);
  const auto y = h.op("silu", {x}).front();
  h.run("plain");
  const auto got = h.read<float>(y);
  const auto expected = reference(as_doubles(numbers));
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), expected[i], 1e-6 * std::fabs(expected[i]))
        << numbers[i];
}

template <class T>
void check_ends() {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity(),
              most = std::numeric_limits<T>::max();
  OpHarness h;
  const auto x = h.declare("x", dtype_of<T>, {9});
  h.write<T>(x, {-200, -1000, -most, -inf, 200, most, inf, nan, 0});
  const auto g = h.declare("g", dtype_of<T>, {9});
  h.write<T>(g, std::vector<T>(9, 2));
  const auto y = h.op("silu", {x}).front();
  h.run("plain");
  const auto got = h.read<T>(y);
  const auto slopes = h.read<T>(h.gradient({g}, {true}).front());
  for (std::size_t i : {0u, 1u, 2u, 3u}) {
    EXPECT_NEAR(static_cast<double>(got[i]), 0, 1e-36) << i;
    EXPECT_NEAR(static_cast<double>(slopes[i]), 0, 1e-36) << i;
  }
  EXPECT_EQ(got[4], 200);
  EXPECT_EQ(got[5], most);
  EXPECT_EQ(got[6], inf);
  EXPECT_TRUE(std::isnan(got[7]));
  EXPECT_EQ(got[8], 0);
  for (std::size_t i : {4u, 5u, 6u}) EXPECT_EQ(slopes[i], 2) << i;
  EXPECT_TRUE(std::isnan(slopes[7]));
  EXPECT_EQ(slopes[8], 1);
}

TEST(Silu, NeitherOverflowsNorLosesNaN) {
  check_ends<float>();
  check_ends<double>();
}

template <class T>
void check_in_place(OpHarness& h, int with_halo, double tolerance) {
  const Shape shape{3, 4, 5, 6};
  const auto x = random_value<T>(h, shape, with_halo), g = random_value<T>(h, shape, with_halo);
  const auto input = as_doubles(h.read<T>(x)), gradient = as_doubles(h.read<T>(g));
  const auto dx = h.op("silu_grad", {g, x}).front();
  h.set_halo(dx, with_halo);
  h.in_place(0, 0);
  h.run("plain");
  std::vector<double> expected;
  for (std::size_t i = 0; i < input.size(); ++i) expected.push_back(gradient[i] * slope(input[i]));
  expect_each_close(h.read<T>(dx), expected, tolerance);
  const auto y = h.op("silu", {x}).front();
  h.set_halo(y, with_halo);
  h.in_place(0, 0);
  h.run("plain");
  expect_each_close(h.read<T>(y), reference(input), tolerance);
}

TEST(Silu, RunsInPlace) {
  OpHarness h;
  for (int with_halo : {0, 1}) {
    check_in_place<float>(h, with_halo, 1e-6);
    check_in_place<double>(h, with_halo, 1e-14);
  }
}

TEST(Silu, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), y = h.random("y", {3, 2});
  const auto z = h.declare("z", DType::int32, {2}), d = h.declare("d", DType::float64, {2, 3});
  expect_error([&] { h.op("silu", {z}); },
               "silu: operand 'x' (z) of type int32; expected float32 or float64");
  expect_error(
      [&] {
        h.op("silu_grad", {x, y});
      },
      "silu_grad: operand 'x' (y) of shape [3, 2]; expected [2, 3], the shape of 'gradient'");
  expect_error(
      [&] {
        h.op("silu_grad", {x, d});
      },
      "silu_grad: operand 'x' (d) of type float64; expected float32");
  h.op("silu", {x});
  const std::size_t ops = h.graph().op_count();
  h.gradient({x}, {false});
  h.gradient({ValueId{}}, {true});
  EXPECT_EQ(h.graph().op_count(), ops);
}

}  // namespace
}  // namespace arenite::codelets::testing
