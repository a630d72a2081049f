#include "codelets/broadcast_testing.hpp"

namespace arenite::codelets::testing {
namespace {

/// Runs it, forward and backward, for one type; `in` and `out`: the halos of x and of the result.
template <class T>
void check(OpHarness& h, const Pattern& p, int in, int out, double tolerance) {
  SCOPED_TRACE(to_string(p.part) + " to " + to_string(p.whole));
  const auto x = random_value<T>(h, p.part, in);
  const auto y = h.op("broadcast_to", {x}, {{"shape", dims(p.whole)}}).front();
  h.set_halo(y, out);
  ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
  const auto input = h.read<T>(x), result = h.read<T>(y);
  for (std::size_t i = 0; i < result.size(); ++i)
    ASSERT_EQ(result[i], input[source(p.whole, p.part, i)]) << i;
  if (out > 0) {
    EXPECT_TRUE(h.halo_is_zero<T>(y));
  }

  const auto g = random_value<T>(h, p.whole, out);
  const auto dx = h.gradient({g}, {true}).front();
  const auto gradient = h.read<T>(g);
  std::vector<double> sums(input.size());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    sums[source(p.whole, p.part, i)] += static_cast<double>(gradient[i]);
  expect_each_close(h.read<T>(dx), sums, tolerance);
}

TEST(BroadcastTo, RepeatsAlongAnyAxesOfAnyShape) {
  OpHarness h(6);
  for (const Pattern& p : patterns(h.engine())) {
    const bool image = p.whole.rank() == 4;
    const int in = image ? halo(h) : 0, out = image ? halo(h) : 0;
    check<float>(h, p, in, out, 1e-6);
    check<double>(h, p, in, out, 1e-12);
  }
}

TEST(BroadcastTo, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const Pattern p{{2, 3, 4}, {1, 3, 1}};
  const auto x = random_value<double>(h, p.part), g = random_value<double>(h, p.whole);
  h.op("broadcast_to", {x}, {{"shape", dims(p.whole)}});
  const auto dx = h.gradient({g}, {true}).front();
  const auto f = [&](const std::vector<double>& moved) {
    std::vector<double> y(static_cast<std::size_t>(p.whole.elements()));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = moved[source(p.whole, p.part, i)];
    return y;
  };
  expect_close(h.read<double>(dx), numeric_gradient(f, h.read<double>(x), h.read<double>(g)), 1e-9);
}

TEST(BroadcastTo, GradientOfTheSameShapeIsTheGradientItself) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), g = h.random("g", {2, 3});
  h.op("broadcast_to", {x}, {{"shape", dims({2, 3})}});
  const std::size_t ops = h.graph().op_count();
  EXPECT_EQ(h.gradient({g}, {true}).front(), g);
  EXPECT_FALSE(h.gradient({g}, {false}).front());
  EXPECT_FALSE(h.gradient({ValueId{}}, {true}).front());
  EXPECT_EQ(h.graph().op_count(), ops);
}

TEST(BroadcastTo, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 1});
  const auto i = h.declare("i", DType::int64, {2, 1});
  const auto repeat = [&](ValueId what, std::vector<std::int64_t> to) {
    h.op("broadcast_to", {what}, {{"shape", std::move(to)}});
  };
  expect_error(
      [&] {
        repeat(i, {2, 3});
      },
      "broadcast_to: operand 'x' (i) of type int64; expected float32 or float64");
  expect_error(
      [&] {
        repeat(x, {3, 3});
      },
      "broadcast_to: operand 'x' (x) of shape [2, 1]; expected [3, 3], the attribute "
      "'shape', where any size may be 1");
  expect_error([&] { repeat(x, {2}); },
               "broadcast_to: operand 'x' (x) of shape [2, 1]; expected [2], the attribute "
               "'shape', where any size may be 1");
}

}  // namespace
}  // namespace arenite::codelets::testing
