#include "codelets/broadcast_testing.hpp"

namespace arenite::codelets::testing {
namespace {

std::vector<double> reference(const Shape& of, const Shape& to, const std::vector<double>& x) {
  std::vector<double> y(static_cast<std::size_t>(to.elements()));
  for (std::size_t i = 0; i < x.size(); ++i) y[source(of, to, i)] += x[i];
  return y;
}

/// Runs it, forward and backward, for one type; `in`: the halo of x.
template <class T>
void check(OpHarness& h, const Shape& of, const Shape& to, int in, double tolerance) {
  SCOPED_TRACE(to_string(of) + " to " + to_string(to));
  const auto x = random_value<T>(h, of, in);
  const auto y = h.op("sum_to", {x}, {{"shape", dims(to)}}).front();
  ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
  const auto input = as_doubles(h.read<T>(x));
  const auto expected = reference(of, to, input);
  expect_each_close(h.read<T>(y), expected, tolerance);

  const auto g = random_value<T>(h, to);
  const auto dx = h.gradient({g}, {true}).front();
  const auto weights = as_doubles(h.read<T>(g));
  const auto gradient = h.read<T>(dx);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    ASSERT_EQ(static_cast<double>(gradient[i]), weights[source(of, to, i)]) << i;
}

TEST(SumTo, SumsOverAnyAxesOfAnyShape) {
  OpHarness h(3);
  for (const Pattern& p : patterns(h.engine())) {
    const int in = p.whole.rank() == 4 ? halo(h) : 0;
    check<float>(h, p.whole, p.part, in, 1e-6);
    check<double>(h, p.whole, p.part, in, 1e-12);
  }
}

TEST(SumTo, SumsWideAndNarrowRowsOfMany) {
  OpHarness h(4);
  const std::vector<Pattern> all{{{3, 700}, {1, 700}},        {{1000, 3}, {1, 3}},
                                 {{5, 1300}, {5, 1}},         {{2, 33, 65}, {2, 1, 65}},
                                 {{2, 9, 63}, {1, 9, 1}},     {{130, 64}, {1, 64}},
                                 {{7, 11, 520}, {1, 11, 520}}};
  for (const Pattern& p : all) {
    check<float>(h, p.whole, p.part, 0, 1e-6);
    check<double>(h, p.whole, p.part, 0, 1e-12);
  }
}

TEST(SumTo, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const Shape of{2, 3, 4}, to{2, 1, 4};
  const auto x = random_value<double>(h, of), g = random_value<double>(h, to);
  h.op("sum_to", {x}, {{"shape", dims(to)}});
  const auto dx = h.gradient({g}, {true}).front();
  const auto f = [&](const std::vector<double>& moved) { return reference(of, to, moved); };
  expect_close(h.read<double>(dx), numeric_gradient(f, h.read<double>(x), h.read<double>(g)), 1e-9);
}

TEST(SumTo, LosesNothingOverLongAxes) {
  OpHarness h(5);
  for (const Pattern& p :
       {Pattern{{3000000}, {1}}, {{1000000, 3}, {1, 3}}, {{20000, 100}, {1, 100}}}) {
    const auto x = h.random(fresh(h), p.whole, 0, 1);
    const auto y = h.op("sum_to", {x}, {{"shape", dims(p.part)}}).front();
    h.run("tiles");
    expect_each_close(h.read<float>(y), reference(p.whole, p.part, as_doubles(h.read<float>(x))),
                      1e-7);
  }
}

TEST(SumTo, NaNReachesOnlyItsSum) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {2, 3});
  h.write<float>(x, {1, std::numeric_limits<float>::quiet_NaN(), 3, 4, 5, 6});
  const auto y = h.op("sum_to", {x}, {{"shape", dims({1, 3})}}).front();
  h.run("tiles");
  const auto sums = h.read<float>(y);
  EXPECT_EQ(sums[0], 5);
  EXPECT_TRUE(std::isnan(sums[1]));
  EXPECT_EQ(sums[2], 9);
}

TEST(SumTo, GradientOfTheSameShapeIsTheGradientItself) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), g = h.random("g", {2, 3});
  h.op("sum_to", {x}, {{"shape", dims({2, 3})}});
  const std::size_t ops = h.graph().op_count();
  EXPECT_EQ(h.gradient({g}, {true}).front(), g);
  EXPECT_FALSE(h.gradient({g}, {false}).front());
  EXPECT_FALSE(h.gradient({ValueId{}}, {true}).front());
  EXPECT_EQ(h.graph().op_count(), ops);
}

TEST(SumTo, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3});
  const auto i = h.declare("i", DType::int32, {2, 3});
  const auto sum = [&](ValueId of, const Shape& to) {
    h.op("sum_to", {of}, {{"shape", dims(to)}});
  };
  expect_error(
      [&] {
        sum(i, {1, 3});
      },
      "sum_to: operand 'x' (i) of type int32; expected float32 or float64");
  expect_error(
      [&] {
        sum(x, {2, 4});
      },
      "sum_to: shape=[2, 4]; expected [2, 3], the shape of 'x', where any size may be 1");
  expect_error([&] { sum(x, {3}); },
               "sum_to: shape=[3]; expected [2, 3], the shape of 'x', where any size may be 1");
  expect_error(
      [&] {
        sum(x, {1, 2, 3});
      },
      "sum_to: shape=[1, 2, 3]; expected [2, 3], the shape of 'x', where any size may be 1");
}

}  // namespace
}  // namespace arenite::codelets::testing
