#include "codelets/testing.hpp"

#include <complex>
#include <limits>

namespace arenite::codelets::testing {
namespace {

using Values = std::vector<double>;
using Complex = std::complex<double>;
using List = std::vector<std::int64_t>;

Complex number(const Values& values, std::int64_t i) {
  return {values[static_cast<std::size_t>(2 * i)], values[static_cast<std::size_t>(2 * i + 1)]};
}

/// Which number of b stands next to number i of a.
std::int64_t partner(const Shape& a, const Shape& b, std::int64_t i) {
  std::int64_t at = 0, step = 1;
  for (int axis = a.rank() - 2; axis >= 0; --axis) {
    if (b[axis] > 1) at += i % a[axis] * step;
    step *= b[axis];
    i /= a[axis];
  }
  return at;
}

Values reference(const Shape& a_shape, const Values& a, const Shape& b_shape, const Values& b,
                 bool conjugate) {
  Values y;
  for (std::int64_t i = 0; i < a_shape.elements() / 2; ++i) {
    const Complex right = number(b, partner(a_shape, b_shape, i));
    const Complex product = number(a, i) * (conjugate ? std::conj(right) : right);
    y.push_back(product.real());
    y.push_back(product.imag());
  }
  return y;
}

/// Written from the chain rule of real and imaginary parts.
std::pair<Values, Values> gradients(const Shape& a_shape, const Values& a, const Shape& b_shape,
                                    const Values& b, bool conjugate, const Values& g) {
  Values da, db(b.size());
  const double sign = conjugate ? -1 : 1;
  for (std::int64_t i = 0; i < a_shape.elements() / 2; ++i) {
    const std::int64_t j = partner(a_shape, b_shape, i);
    const Complex left = number(a, i), right = number(b, j), by = number(g, i);
    // y = (a.re·b.re − s·a.im·b.im) + i·(s·a.re·b.im + a.im·b.re)
    da.push_back(by.real() * right.real() + sign * by.imag() * right.imag());
    da.push_back(-sign * by.real() * right.imag() + by.imag() * right.real());
    const auto at = static_cast<std::size_t>(2 * j);
    db[at] += by.real() * left.real() + by.imag() * left.imag();
    db[at + 1] += sign * (by.imag() * left.real() - by.real() * left.imag());
  }
  return {da, db};
}

template <class T>
ValueId random(OpHarness& h, const std::string& name, const Shape& shape) {
  const auto id =
      h.declare(name, std::is_same_v<T, float> ? DType::float32 : DType::float64, shape);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  for (T& v : values) v = static_cast<T>(uniform(h.engine()));
  h.write(id, values);
  return id;
}

struct Case {
  Shape a, b;
};

std::vector<Case> cases(OpHarness& h) {
  std::vector<Case> all{{{2}, {2}},
                        {{5, 2}, {1, 2}},
                        {{2, 7, 4, 16, 2}, {1, 7, 1, 16, 2}},
                        {{2, 7, 4, 16, 2}, {2, 7, 4, 16, 2}},
                        {{300, 3, 2}, {1, 3, 2}},
                        {{3, 300, 2}, {3, 1, 2}},
                        {{0, 3, 2}, {1, 3, 2}},
                        {{0, 3, 2}, {0, 1, 2}},
                        {{4, 0, 2}, {1, 1, 2}},
                        {{2, 1, 2, 3, 1, 2, 2, 2}, {2, 1, 1, 3, 1, 1, 2, 2}}};
  std::uniform_int_distribution<std::int64_t> size(1, 7);
  std::uniform_int_distribution<int> rank(0, 5), coin(0, 1), wide(1, 40);
  for (int i = 0; i < 60; ++i) {
    std::vector<std::int64_t> a, b;
    for (int axes = rank(h.engine()); axes > 0; --axes) {
      a.push_back(axes == 1 ? wide(h.engine()) : size(h.engine()));
      b.push_back(coin(h.engine()) == 0 ? 1 : a.back());
    }
    a.push_back(2), b.push_back(2);
    all.push_back({Shape(a), Shape(b)});
  }
  return all;
}

template <class T>
void check_all(double tolerance) {
  OpHarness h(3);
  int counter = 0;
  for (const Case& c : cases(h)) {
    for (const std::int64_t conjugate : {0, 1}) {
      SCOPED_TRACE(to_string(c.a) + " by " + to_string(c.b) + " " + std::to_string(conjugate));
      const std::string tag = std::to_string(counter++);
      const auto a = random<T>(h, "a" + tag, c.a), b = random<T>(h, "b" + tag, c.b),
                 g = random<T>(h, "g" + tag, c.a);
      const auto y = h.op("complex_mul", {a, b}, {{"conjugate", conjugate}}).front();
      ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
      const Values left = as_doubles(h.read<T>(a)), right = as_doubles(h.read<T>(b));
      expect_close(h.read<T>(y), reference(c.a, left, c.b, right, conjugate == 1), tolerance);
      const auto found = h.gradient({g}, {true, true});
      const auto [da, db] =
          gradients(c.a, left, c.b, right, conjugate == 1, as_doubles(h.read<T>(g)));
      ASSERT_EQ(h.graph()[found[0]].shape, c.a);
      ASSERT_EQ(h.graph()[found[1]].shape, c.b);
      expect_close(h.read<T>(found[0]), da, tolerance);
      expect_close(h.read<T>(found[1]), db, tolerance);
    }
  }
}

TEST(ComplexMul, MatchesTheReferenceInSinglePrecision) { check_all<float>(1e-6); }
TEST(ComplexMul, MatchesTheReferenceInDoublePrecision) { check_all<double>(1e-14); }

TEST(ComplexMul, GradientsAgreeWithCentralDifferences) {
  OpHarness h(5);
  const Shape of_a{3, 2, 5, 2}, of_b{1, 2, 1, 2};
  for (const bool conjugate : {false, true}) {
    const std::string tag = conjugate ? "c" : "";
    const auto a = h.random("a" + tag, of_a), b = h.random("b" + tag, of_b),
               g = h.random("g" + tag, of_a);
    h.op("complex_mul", {a, b}, {{"conjugate", std::int64_t{conjugate}}});
    const auto found = h.gradient({g}, {true, true});
    const Values left = as_doubles(h.read<float>(a)), right = as_doubles(h.read<float>(b)),
                 gradient = as_doubles(h.read<float>(g));
    const auto f_a = [&](const Values& v) { return reference(of_a, v, of_b, right, conjugate); };
    const auto f_b = [&](const Values& v) { return reference(of_a, left, of_b, v, conjugate); };
    expect_close(h.read<float>(found[0]), numeric_gradient(f_a, left, gradient), 1e-6);
    expect_close(h.read<float>(found[1]), numeric_gradient(f_b, right, gradient), 1e-6);
  }
}

TEST(ComplexMul, SumsManyProductsAccurately) {
  OpHarness h(7);
  for (const Case& c : {Case{{100000, 3, 2}, {1, 3, 2}}, Case{{3, 100000, 2}, {3, 1, 2}}}) {
    const std::string tag = std::to_string(c.a[0]);
    const auto g = h.random("g" + tag, c.a, 0, 1), a = h.random("a" + tag, c.a, 0, 1);
    const auto db =
        h.op("complex_mul_grad_right", {g, a}, {{"shape", List(c.b.begin(), c.b.end())}}).front();
    h.run("plain");
    const Values none(static_cast<std::size_t>(c.b.elements()));
    const auto expected = gradients(c.a, as_doubles(h.read<float>(a)), c.b, none, false,
                                    as_doubles(h.read<float>(g)));
    expect_close(h.read<float>(db), expected.second, 2e-7);
  }
}

TEST(ComplexMul, RunsInPlace) {
  OpHarness h;
  for (const Case& c :
       {Case{{3, 37, 2}, {3, 37, 2}}, Case{{3, 37, 2}, {3, 1, 2}}, Case{{3, 37, 2}, {1, 37, 2}}}) {
    const std::string tag = std::to_string(c.b[0]) + "." + std::to_string(c.b[1]);
    const auto a = h.random("a" + tag, c.a), b = h.random("b" + tag, c.b);
    const auto apart = h.op("complex_mul", {a, b}).front();
    h.run("plain");
    const auto y = h.op("complex_mul", {a, b}).front();
    h.in_place(0, 0);
    h.run("plain");
    EXPECT_EQ(h.read<float>(y), h.read<float>(apart));
  }
}

TEST(ComplexMul, NaNAndInfinityStayInTheirNumber) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  OpHarness h;
  const auto a = h.declare("a", DType::float32, {4, 2}), b = h.declare("b", DType::float32, {1, 2});
  h.write<float>(a, {1, 2, nan, 1, inf, 1, 3, 4});
  h.write<float>(b, {2, 1});
  const auto y = h.op("complex_mul", {a, b}).front();
  h.run("plain");
  const auto out = h.read<float>(y);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 2), (std::vector<float>{0, 5}));
  EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
  EXPECT_EQ(std::vector<float>(out.begin() + 4, out.end()), (std::vector<float>{inf, inf, 2, 11}));
}

TEST(ComplexMul, BuildsOnlyWantedGradients) {
  OpHarness h;
  const auto a = h.random("a", {3, 2}), b = h.random("b", {1, 2});
  h.op("complex_mul", {a, b});
  const std::size_t ops = h.graph().op_count();
  h.gradient({a}, {false, false});
  h.gradient({ValueId{}}, {true, true});
  EXPECT_EQ(h.graph().op_count(), ops);
  EXPECT_FALSE(h.gradient({a}, {true, false})[1]);
  EXPECT_FALSE(h.gradient({a}, {false, true})[0]);
  EXPECT_EQ(h.graph().op_count(), ops + 2);
}

TEST(ComplexMul, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto a = h.random("a", {4, 3, 2}), three = h.random("three", {4, 3}),
             flat = h.random("flat", {3, 2}), other = h.random("other", {2, 3, 2}),
             real = h.random("real", {4, 3, 1}), s = h.random("s", {});
  const auto i = h.declare("i", DType::int32, {4, 3, 2}),
             d = h.declare("d", DType::float64, {4, 3, 2});
  const auto mul = [&](ValueId left, ValueId right, std::int64_t conjugate = 0) {
    h.op("complex_mul", {left, right}, {{"conjugate", conjugate}});
  };
  expect_error([&] { mul(i, i); },
               "complex_mul: operand 'a' (i) of type int32; expected float32 or float64");
  expect_error([&] { mul(three, a); },
               "complex_mul: operand 'a' (three) of shape [4, 3]; expected [..., 2], complex "
               "numbers");
  expect_error([&] { mul(s, s); },
               "complex_mul: operand 'a' (s) of shape []; expected [..., 2], complex numbers");
  expect_error([&] { mul(a, d); },
               "complex_mul: operand 'b' (d) of type float64; expected float32");
  const std::string expected =
      "; expected [4, 3, 2], the shape of 'a', or 1 in place of any axis but the last";
  expect_error([&] { mul(a, flat); }, "complex_mul: operand 'b' (flat) of shape [3, 2]" + expected);
  expect_error([&] { mul(a, other); },
               "complex_mul: operand 'b' (other) of shape [2, 3, 2]" + expected);
  expect_error([&] { mul(a, real); },
               "complex_mul: operand 'b' (real) of shape [4, 3, 1]" + expected);
  expect_error([&] { mul(a, s); }, "complex_mul: operand 'b' (s) of shape []" + expected);
  expect_error([&] { mul(a, a, 2); }, "complex_mul: conjugate=2; expected 0 or 1");
  const auto grad = [&](ValueId gradient, ValueId left, List shape) {
    h.op("complex_mul_grad_right", {gradient, left}, {{"shape", std::move(shape)}});
  };
  expect_error(
      [&] {
        grad(a, flat, {4, 3, 2});
      },
      "complex_mul_grad_right: operand 'a' (flat) of shape [3, 2]; expected [4, 3, 2], "
      "the shape of 'gradient'");
  expect_error(
      [&] {
        grad(a, a, {4, -1, 2});
      },
      "complex_mul_grad_right: shape=[4, -1, 2]" + expected);
  expect_error([&] { grad(a, a, {}); }, "complex_mul_grad_right: shape=[]" + expected);
}

}  // namespace
}  // namespace arenite::codelets::testing
