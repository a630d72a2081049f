#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

using List = std::vector<std::int64_t>;

Shape reshaped(OpHarness& h, ValueId x, List shape) {
  return h.graph()[h.op("reshape", {x}, {{"shape", std::move(shape)}}).front()].shape;
}

TEST(Flatten, IsAViewOfItsOperand) {
  OpHarness h;
  const auto x = h.random("x", {4, 3, 2, 5});
  const auto y = h.op("flatten", {x}).front();
  EXPECT_EQ(h.graph()[y].shape, Shape({4, 30}));
  EXPECT_EQ(h.graph().root(x), h.graph().root(y));
  EXPECT_EQ(h.graph()[y].offset, 0);
  EXPECT_EQ(h.read<float>(y), h.read<float>(x));
  EXPECT_TRUE(h.cpu_kernels().empty());
}

TEST(Flatten, TakesEveryRankAndType) {
  OpHarness h;
  const auto shape_of = [&](const char* name, DType type, Shape shape) {
    return h.graph()[h.op("flatten", {h.declare(name, type, shape)}).front()].shape;
  };
  EXPECT_EQ(shape_of("a", DType::float32, {7}), Shape({7, 1}));
  EXPECT_EQ(shape_of("b", DType::uint8, {7, 2}), Shape({7, 2}));
  EXPECT_EQ(shape_of("c", DType::int64, {0, 3, 4}), Shape({0, 12}));
  EXPECT_EQ(shape_of("d", DType::float32, {3, 0, 4}), Shape({3, 0}));
  expect_error([&] { shape_of("e", DType::float32, {}); },
               "flatten: operand 'x' (e) of shape []; expected rank 1 or more, [N, …]");
}

TEST(Flatten, GradientHasTheOperandsShapeAndNoBytes) {
  OpHarness h;
  const auto x = h.random("x", {4, 3, 2, 5}), g = h.random("g", {4, 30});
  h.op("flatten", {x});
  const auto dx = h.gradient({g}, {true}).front();
  EXPECT_EQ(h.graph()[dx].shape, Shape({4, 3, 2, 5}));
  EXPECT_EQ(h.graph().root(dx), h.graph().root(g));

  const auto g2 = h.random("g2", {4, 3, 2, 5});
  h.op("reshape", {h.random("x2", {4, 30})}, {{"shape", List{4, 3, 2, 5}}});
  const auto dx2 = h.gradient({g2}, {true}).front();
  EXPECT_EQ(h.graph()[dx2].shape, Shape({4, 30}));
  EXPECT_EQ(h.read<float>(dx2), h.read<float>(g2));
  EXPECT_FALSE(h.gradient({g2}, {false}).front());
}

TEST(Flatten, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const auto x = h.random("x", {2, 3, 2, 2}), g = h.random("g", {2, 12}),
             g2 = h.random("g2", {4, 6});
  // A view's elements stay in their order, under whichever shape.
  const auto expected = [&](ValueId weights) {
    return numeric_gradient([](const std::vector<double>& v) { return v; },
                            as_doubles(h.read<float>(x)), as_doubles(h.read<float>(weights)));
  };
  h.op("flatten", {x});
  expect_close(h.read<float>(h.gradient({g}, {true}).front()), expected(g), 1e-6);
  h.op("reshape", {x}, {{"shape", List{4, 6}}});
  expect_close(h.read<float>(h.gradient({g2}, {true}).front()), expected(g2), 1e-6);
}

TEST(Reshape, FindsTheUnknownSize) {
  OpHarness h;
  const auto x = h.random("x", {4, 6});
  EXPECT_EQ(reshaped(h, x, {2, -1, 3}), Shape({2, 4, 3}));
  EXPECT_EQ(reshaped(h, x, {24}), Shape({24}));
  EXPECT_EQ(reshaped(h, x, {-1}), Shape({24}));
  EXPECT_EQ(reshaped(h, h.random("one", {1}), {}), Shape({}));
  EXPECT_EQ(reshaped(h, h.random("none", {0, 3}), {3, -1}), Shape({3, 0}));
}

TEST(Reshape, RefusesOtherElementCounts) {
  OpHarness h;
  const auto x = h.random("x", {4, 6});
  expect_error(
      [&] {
        reshaped(h, x, {5, 5});
      },
      "reshape: shape=[5, 5] of 25 elements; expected 24 elements, as x has the shape [4, 6]");
  expect_error(
      [&] {
        reshaped(h, x, {-1, 2, -1});
      },
      "reshape: shape=[-1, 2, -1] with 2 sizes of -1; expected at most one");
  expect_error(
      [&] {
        reshaped(h, x, {5, -1});
      },
      "reshape: shape=[5, -1] for 24 elements of [4, 6]; expected known sizes whose product "
      "divides the number of elements");
  expect_error(
      [&] {
        reshaped(h, x, {0, -1});
      },
      "reshape: shape=[0, -1] for 24 elements of [4, 6]; expected known sizes whose product "
      "divides the number of elements");
  expect_error(
      [&] {
        reshaped(h, h.random("none", {0, 6}), {0, -1});
      },
      "reshape: shape=[0, -1], where another size is 0; expected no -1 there, as any size has 0 "
      "elements");
  expect_error(
      [&] {
        reshaped(h, x, {-2, 12});
      },
      "reshape: shape=[-2, 12]; expected sizes of at least 0, and at most one -1 for the size "
      "that follows");
}

}  // namespace
}  // namespace arenite::codelets::testing
