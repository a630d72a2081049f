#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using Values = std::vector<double>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

Values reference(const Values& x, const Values& weight, double eps) {
  const std::size_t length = weight.size();
  Values y;
  for (std::size_t from = 0; from < x.size(); from += length) {
    double squares = 0;
    for (std::size_t i = 0; i < length; ++i) squares += x[from + i] * x[from + i];
    const double root = std::sqrt(squares / static_cast<double>(length) + eps);
    for (std::size_t i = 0; i < length; ++i) y.push_back(x[from + i] / root * weight[i]);
  }
  return y;
}

/// The formulas of both gradients, for shapes that are too large for central differences.
std::pair<Values, Values> gradients(const Values& g, const Values& x, const Values& weight,
                                    double eps) {
  const std::size_t length = weight.size();
  const auto count = static_cast<double>(length);
  Values dx, dweight(length);
  for (std::size_t from = 0; from < x.size(); from += length) {
    double squares = 0, dot = 0;
    for (std::size_t i = from; i < from + length; ++i) {
      squares += x[i] * x[i];
      dot += g[i] * weight[i - from] * x[i];
    }
    const double root = std::sqrt(squares / count + eps);
    for (std::size_t i = from; i < from + length; ++i) {
      dx.push_back(g[i] * weight[i - from] / root - x[i] * dot / (count * root * root * root));
      dweight[i - from] += g[i] * x[i] / root;
    }
  }
  return {dx, dweight};
}

std::vector<Shape> shapes(OpHarness& h) {
  std::vector<Shape> all{{1},    {17},   {3, 1},      {64, 512},       {2, 1000},
                         {0, 5}, {4, 0}, {100, 2, 3}, {1, 2, 3, 4, 33}};
  std::uniform_int_distribution<int> size(1, 9), length(1, 90);
  for (int i = 0; i < 40; ++i) {
    all.push_back(i % 2 == 0 ? Shape{size(h.engine()), length(h.engine())}
                             : Shape{size(h.engine()), size(h.engine()), length(h.engine())});
  }
  return all;
}

TEST(RmsNorm, MatchesTheReferenceForwardAndBackward) {
  OpHarness h(3);
  int number = 0;
  for (const Shape& shape : shapes(h)) {
    SCOPED_TRACE(to_string(shape));
    const std::string tag = std::to_string(number++);
    // So large that it matters, now and then.
    const double eps = number % 3 == 0 ? 0.5 : 1e-5;
    const auto x = h.random("x" + tag, shape), weight = h.random("w" + tag, {shape.at(-1)}),
               g = h.random("g" + tag, shape);
    const auto y = h.op("rms_norm", {x, weight}, {{"eps", eps}}).front();
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    const Values input = as_doubles(h.read<float>(x)), w = as_doubles(h.read<float>(weight)),
                 gradient = as_doubles(h.read<float>(g));
    const auto [dx, dweight] = gradients(gradient, input, w, eps);
    const auto found = h.gradient({g}, {true, true});
    expect_close(h.read<float>(y), reference(input, w, eps), 1e-6);
    expect_close(h.read<float>(found[1]), dweight, 1e-6);
    // Of one element the two terms nearly cancel.
    if (shape.at(-1) > 1) expect_close(h.read<float>(found[0]), dx, 2e-6);
  }
}

TEST(RmsNorm, GradientsAgreeWithCentralDifferences) {
  OpHarness h(5);
  for (const double eps : {1e-5, 0.3}) {
    const std::string tag = std::to_string(eps);
    const auto x = h.random("x" + tag, {3, 2, 7}), weight = h.random("w" + tag, {7}),
               g = h.random("g" + tag, {3, 2, 7});
    h.op("rms_norm", {x, weight}, {{"eps", eps}});
    const auto found = h.gradient({g}, {true, true});
    const Values input = as_doubles(h.read<float>(x)), w = as_doubles(h.read<float>(weight)),
                 gradient = as_doubles(h.read<float>(g));
    const auto of_x = [&](const Values& v) { return reference(v, w, eps); };
    const auto of_weight = [&](const Values& v) { return reference(input, v, eps); };
    expect_close(h.read<float>(found[0]), numeric_gradient(of_x, input, gradient), 2e-6);
    expect_close(h.read<float>(found[1]), numeric_gradient(of_weight, w, gradient), 1e-6);
  }
}

TEST(RmsNorm, SumsManyRowsAndLongOnesAccurately) {
  OpHarness h(7);
  for (const Shape& shape : {Shape{20000, 3}, Shape{2, 200001}}) {
    const std::string tag = std::to_string(shape[0]);
    const auto x = h.random("x" + tag, shape, 0.5, 1),
               weight = h.random("w" + tag, {shape.at(-1)}, 0.5, 1),
               g = h.random("g" + tag, shape, 0.5, 1);
    const auto y = h.op("rms_norm", {x, weight}).front();
    h.run("plain");
    const Values input = as_doubles(h.read<float>(x)), w = as_doubles(h.read<float>(weight));
    expect_close(h.read<float>(y), reference(input, w, 1e-5), 4e-7);
    const auto found = h.gradient({g}, {false, true});
    const auto expected = gradients(as_doubles(h.read<float>(g)), input, w, 1e-5);
    expect_close(h.read<float>(found[1]), expected.second, 4e-7);
  }
}

TEST(RmsNorm, NumbersWhoseSquaresDoNotFitAreNormalised) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {2, 2}),
             weight = h.declare("w", DType::float32, {2});
  h.write<float>(x, {3e30f, -3e30f, 2e-25f, 2e-25f});
  h.write<float>(weight, {1, 2});
  const auto y = h.op("rms_norm", {x, weight}, {{"eps", 0.0}}).front();
  h.run("plain");
  expect_close(h.read<float>(y), std::vector{1.0, -2.0, 1.0, 2.0}, 1e-6);
}

TEST(RmsNorm, NaNAndInfinityStayInTheirRow) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {3, 2}),
             weight = h.declare("w", DType::float32, {2}), g = h.random("g", {3, 2});
  h.write<float>(x, {1, nan, 3, -4, 1, inf});
  h.write<float>(weight, {1, 1});
  const auto y = h.op("rms_norm", {x, weight}).front();
  h.run("plain");
  const auto out = h.read<float>(y);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  EXPECT_TRUE(std::isfinite(out[2]) && std::isfinite(out[3]));
  EXPECT_EQ(out[4], 0);
  EXPECT_TRUE(std::isnan(out[5]));
  const auto dx = h.read<float>(h.gradient({g}, {true, false})[0]);
  EXPECT_TRUE(std::isnan(dx[0]) && std::isnan(dx[1]));
  EXPECT_TRUE(std::isfinite(dx[2]) && std::isfinite(dx[3]));
}

TEST(RmsNorm, RunsInPlace) {
  OpHarness h;
  for (const Shape& shape : {Shape{5}, Shape{4, 33}, Shape{2, 3, 16}}) {
    const std::string tag = std::to_string(shape.rank());
    const auto x = h.random("x" + tag, shape), weight = h.random("w" + tag, {shape.at(-1)});
    const auto apart = h.op("rms_norm", {x, weight}).front();
    h.run("plain");
    const auto y = h.op("rms_norm", {x, weight}).front();
    h.in_place(0, 0);
    h.run("plain");
    EXPECT_EQ(h.read<float>(y), h.read<float>(apart));
    for (std::size_t operand : {0u, 1u}) {
      const std::string number = tag + std::to_string(operand);
      const auto g = h.random("g" + number, shape), of = h.random("of" + number, shape);
      const auto dx = h.op("rms_norm_grad_input", {g, of, weight}).front();
      h.run("plain");
      const auto together = h.op("rms_norm_grad_input", {g, of, weight}).front();
      h.in_place(0, operand);
      h.run("plain");
      EXPECT_EQ(h.read<float>(together), h.read<float>(dx));
    }
  }
}

TEST(RmsNorm, BuildsOnlyWantedGradients) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), weight = h.random("w", {3});
  h.op("rms_norm", {x, weight}, {{"eps", 0.25}});
  const std::size_t ops = h.graph().op_count();
  h.gradient({x}, {false, false});
  h.gradient({ValueId{}}, {true, true});
  EXPECT_EQ(h.graph().op_count(), ops);
  const auto found = h.gradient({x}, {false, true});
  EXPECT_FALSE(found[0]);
  EXPECT_EQ(h.graph().op_count(), ops + 1);
  EXPECT_EQ(h.graph()[h.graph()[found[1]].producer].attributes.real("eps"), 0.25);
}

TEST(RmsNorm, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), w = h.random("w", {3}), two = h.random("two", {2}),
             s = h.random("s", {});
  const auto d = h.declare("d", DType::float64, {3});
  const auto norm = [&](ValueId of, ValueId weight, double eps = 1e-5) {
    h.op("rms_norm", {of, weight}, {{"eps", eps}});
  };
  expect_error([&] { norm(d, w); }, "rms_norm: operand 'x' (d) of type float64; expected float32");
  expect_error([&] { norm(s, w); },
               "rms_norm: operand 'x' (s) of shape []; expected rank 1 or more, [..., C]");
  expect_error([&] { norm(x, two); },
               "rms_norm: operand 'weight' (two) of shape [2]; expected [3], the last axis of x "
               "[2, 3]");
  expect_error([&] { norm(x, d); },
               "rms_norm: operand 'weight' (d) of type float64; expected float32");
  expect_error([&] { norm(x, w, -0.5); },
               "rms_norm: eps=-0.5; expected a finite number of at least 0");
  expect_error([&] { norm(x, w, std::numeric_limits<double>::quiet_NaN()); },
               "rms_norm: eps=nan; expected a finite number of at least 0");
  expect_error(
      [&] {
        h.op("rms_norm_grad_input", {x, w, w});
      },
      "rms_norm_grad_input: operand 'x' (w) of shape [3]; expected [2, 3], the shape of "
      "'gradient'");
  expect_error(
      [&] {
        h.op("rms_norm_grad_input", {x, x, two});
      },
      "rms_norm_grad_input: operand 'weight' (two) of shape [2]; expected [3], the last "
      "axis of x [2, 3]");
  expect_error(
      [&] {
        h.op("rms_norm_grad_weight", {x, w});
      },
      "rms_norm_grad_weight: operand 'x' (w) of shape [3]; expected [2, 3], the shape of "
      "'gradient'");
}

}  // namespace
}  // namespace arenite::codelets::testing
