#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

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

TEST(BiasGrad, MatchesTheReference) {
  OpHarness h(7);
  std::uniform_int_distribution<int> halo(0, 2);
  int number = 0;
  for (const Shape& shape : shapes(h)) {
    SCOPED_TRACE(to_string(shape));
    const auto g = h.random("g" + std::to_string(number++), shape, -1, 1,
                            shape.rank() == 4 ? halo(h.engine()) : 0);
    const auto db = h.op("bias_grad", {g}).front();
    for (const char* kernel : {"plain", "tiles"}) {
      ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
      expect_close(h.read<float>(db),
                   summed(as_doubles(h.read<float>(g)), static_cast<std::size_t>(shape.at(-1))),
                   1e-6);
    }
  }
}

TEST(BiasGrad, SumsManyPixelsAccurately) {
  OpHarness h(11);
  const auto g = h.random("g", {64, 128, 128, 4}, 0, 1);
  const auto db = h.op("bias_grad", {g}).front();
  h.run("plain");
  expect_close(h.read<float>(db), summed(as_doubles(h.read<float>(g)), 4), 2e-7);
}

TEST(BiasGrad, NaNReachesOnlyItsChannel) {
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

TEST(BiasGrad, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto s = h.random("s", {});
  expect_error([&] { h.op("bias_grad", {s}); },
               "bias_grad: operand 'gradient' (s) of shape []; expected rank 1 or more, [..., C]");
}

}  // namespace
}  // namespace arenite::codelets::testing
