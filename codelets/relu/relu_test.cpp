#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

std::vector<double> reference(const std::vector<double>& x) {
  std::vector<double> y;
  for (double v : x) y.push_back(v > 0 ? v : 0);
  return y;
}

/// Shapes of every rank, with the halos of x and of the result where the rank allows them.
struct Case {
  Shape shape;
  int in = 0, out = 0;
};

std::vector<Case> cases(OpHarness& h) {
  std::vector<Case> all{
      {{}}, {{1}}, {{17}}, {{5, 33}}, {{0, 3}}, {{2, 3, 4}}, {{1, 1, 1, 1}, 1, 2}};
  std::uniform_int_distribution<int> size(1, 9), halo(0, 2);
  for (int i = 0; i < 30; ++i) {
    all.push_back({{size(h.engine()), size(h.engine()), size(h.engine()), size(h.engine())},
                   halo(h.engine()),
                   halo(h.engine())});
  }
  return all;
}

/// Away from the kink at 0, so that central differences are exact.
ValueId kinkless(OpHarness& h, const std::string& name, const Shape& shape, int halo) {
  const auto id = h.random(name, shape, -1, 1, halo);
  auto values = h.read<float>(id);
  for (float& v : values) v += v < 0 ? -0.1f : 0.1f;
  h.write(id, values);
  return id;
}

TEST(Relu, MatchesTheReferenceForwardAndBackward) {
  OpHarness h(5);
  int number = 0;
  for (const Case& c : cases(h)) {
    const std::string tag = std::to_string(number++) + " " + to_string(c.shape).substr(0, 1);
    const auto x = kinkless(h, "x" + tag, c.shape, c.in);
    const auto y = h.op("relu", {x}).front();
    h.set_halo(y, c.out);
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    const auto input = as_doubles(h.read<float>(x));
    EXPECT_EQ(as_doubles(h.read<float>(y)), reference(input));
    if (c.out > 0) {
      EXPECT_TRUE(h.halo_is_zero(y));
    }

    const auto g = h.random("g" + tag, c.shape, -1, 1, c.in);
    const auto dx = h.gradient({g}, {true}).front();
    if (c.shape.elements() == 0) continue;
    expect_close(h.read<float>(dx),
                 numeric_gradient(reference, input, as_doubles(h.read<float>(g))), 1e-6);
  }
}

TEST(Relu, GradientWritesItsHalo) {
  OpHarness h;
  const Shape shape{2, 3, 4, 5};
  const auto g = h.random("g", shape, -1, 1, 2), y = h.random("y", shape, -1, 1, 1);
  const auto dx = h.op("relu_grad", {g, y}).front();
  h.set_halo(dx, 3);
  h.run("plain");
  EXPECT_TRUE(h.halo_is_zero(dx));
  const auto output = h.read<float>(y), gradient = h.read<float>(g), got = h.read<float>(dx);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], output[i] > 0 ? gradient[i] : 0);
}

TEST(Relu, LetsNaNAndInfinityThrough) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {4});
  h.write<float>(x, {nan, inf, -inf, -0.0f});
  const auto y = h.op("relu", {x}).front();
  h.run("plain");
  const auto out = h.read<float>(y);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], inf);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[3], 0);
  const auto g = h.declare("g", DType::float32, {4});
  h.write<float>(g, {1, 2, nan, 4});
  EXPECT_EQ(h.read<float>(h.gradient({g}, {true}).front()), (std::vector<float>{1, 2, 0, 0}));
}

TEST(Relu, RunsInPlace) {
  OpHarness h;
  for (int halo : {0, 1}) {
    const std::string tag = std::to_string(halo);
    const auto x = h.random("x" + tag, {3, 4, 5, 6}, -1, 1, halo);
    const auto expected = reference(as_doubles(h.read<float>(x)));
    const auto y = h.op("relu", {x}).front();
    h.set_halo(y, halo);
    h.in_place(0, 0);
    h.run("plain");
    EXPECT_EQ(as_doubles(h.read<float>(y)), expected);

    const auto g = h.random("g" + tag, {3, 4, 5, 6}, -1, 1, halo);
    const auto before = h.read<float>(g), output = h.read<float>(y);
    const auto dx = h.op("relu_grad", {g, y}).front();
    h.set_halo(dx, halo);
    h.in_place(0, 0);
    h.run("plain");
    const auto after = h.read<float>(dx);
    for (std::size_t i = 0; i < after.size(); ++i)
      EXPECT_EQ(after[i], output[i] > 0 ? before[i] : 0);
  }
}

TEST(Relu, KnowsDoubles) {
  OpHarness h(9);
  for (const int halo : {0, 1}) {
    const std::string tag = std::to_string(halo);
    const auto x = h.declare("x" + tag, DType::float64, {2, 3, 4, 5}, halo),
               g = h.declare("g" + tag, DType::float64, {2, 3, 4, 5}, halo);
    std::vector<double> values(120), gradient(120);
    for (std::size_t i = 0; i < values.size(); ++i) {
      // No float is near enough.
      values[i] = (i % 3 == 0 ? -1e-300 : 1 + 1e-12) * static_cast<double>(i + 1);
      gradient[i] = 1 + 1e-15 * static_cast<double>(i);
    }
    h.write(x, values);
    h.write(g, gradient);
    const auto y = h.op("relu", {x}).front();
    ASSERT_EQ(h.graph()[y].type, DType::float64);
    h.set_halo(y, halo);
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    EXPECT_EQ(h.read<double>(y), reference(values));
    EXPECT_TRUE(halo == 0 || h.halo_is_zero<double>(y));
    const auto dx = h.read<double>(h.gradient({g}, {true}).front());
    for (std::size_t i = 0; i < dx.size(); ++i)
      EXPECT_EQ(dx[i], values[i] > 0 ? gradient[i] : 0) << i;
  }
}

TEST(Relu, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), y = h.random("y", {3, 2});
  const auto z = h.declare("z", DType::int32, {2});
  expect_error([&] { h.op("relu", {z}); },
               "relu: operand 'x' (z) of type int32; expected float32 or float64");
  expect_error(
      [&] {
        h.op("relu_grad", {x, y});
      },
      "relu_grad: operand 'output' (y) of shape [3, 2]; expected [2, 3], the shape of 'gradient'");
  h.op("relu", {x});
  const std::size_t ops = h.graph().op_count();
  h.gradient({x}, {false});
  h.gradient({ValueId{}}, {true});
  EXPECT_EQ(h.graph().op_count(), ops);
}

}  // namespace
}  // namespace arenite::codelets::testing
