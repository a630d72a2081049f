#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

ValueId slice(OpHarness& h, ValueId x, std::int64_t begin, std::int64_t end) {
  return h.op("slice", {x}, {{"begin", begin}, {"end", end}}).front();
}

/// Rows [begin, end) of a dense vector.
template <class T>
std::vector<T> rows_of(const std::vector<T>& x, std::int64_t rows, std::int64_t begin,
                       std::int64_t end) {
  const std::int64_t row = rows == 0 ? 0 : static_cast<std::int64_t>(x.size()) / rows;
  return {x.begin() + begin * row, x.begin() + end * row};
}

TEST(Slice, IsAViewOfItsRows) {
  OpHarness h;
  const auto x = h.random("x", {7, 3, 2});
  const auto y = slice(h, x, 2, 6);
  EXPECT_EQ(h.graph()[y].shape, Shape({4, 3, 2}));
  EXPECT_EQ(h.graph().root(y), h.graph().root(x));
  EXPECT_EQ(h.graph()[y].offset, 2 * 6 * 4);
  EXPECT_EQ(h.read<float>(y), rows_of(h.read<float>(x), 7, 2, 6));
  EXPECT_TRUE(h.cpu_kernels().empty());
  const auto inner = slice(h, y, 1, 2);  // of a slice
  EXPECT_EQ(h.read<float>(inner), rows_of(h.read<float>(x), 7, 3, 4));
  EXPECT_EQ(h.graph()[slice(h, x, 7, 7)].shape, Shape({0, 3, 2}));
}

TEST(Slice, TakesImagesWithTheirHalos) {
  OpHarness h;
  const auto x = h.random("x", {5, 3, 4, 2}, -1, 1, 2);
  const auto y = slice(h, x, 1, 4);
  EXPECT_EQ(h.graph()[y].layout.halo, 2);
  EXPECT_EQ(h.graph()[y].offset, (3 + 4) * (4 + 4) * 2 * 4);
  EXPECT_EQ(h.read<float>(y), rows_of(h.read<float>(x), 5, 1, 4));
}

TEST(Slice, TakesEveryTypeAndWritesThroughToItsOperand) {
  OpHarness h;
  const auto x = h.declare("x", DType::int64, {4}), one = h.declare("one", DType::int64, {2});
  h.write<std::int64_t>(x, {1, 2, 3, 4});
  h.write<std::int64_t>(one, {10, 20});
  h.op("accumulate", {slice(h, x, 1, 3), one});
  h.run("tiles");
  EXPECT_EQ(h.read<std::int64_t>(x), (std::vector<std::int64_t>{1, 12, 23, 4}));
}

/// The gradient of rows [begin, end), with any halos: the rows themselves, zeros around them.
void check_gradient(OpHarness& h, const Shape& shape, std::int64_t begin, std::int64_t end,
                    int from, int into, const std::string& tag) {
  SCOPED_TRACE(to_string(shape) + " " + std::to_string(begin) + " to " + std::to_string(end));
  const auto g = h.random("g" + tag, shape.with(0, end - begin), -1, 1, from);
  const auto dx = h.op("slice_grad", {g}, {{"begin", begin}, {"rows", shape[0]}}).front();
  h.set_halo(dx, into);
  ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
  std::vector<float> expected(static_cast<std::size_t>(shape.elements()), 0.0f);
  const auto gs = h.read<float>(g);
  const std::int64_t row = shape[0] == 0 ? 0 : shape.elements() / shape[0];
  std::copy(gs.begin(), gs.end(), expected.begin() + begin * row);
  EXPECT_EQ(h.read<float>(dx), expected);
  EXPECT_TRUE(h.halo_is_zero(dx));
}

TEST(Slice, GradientIsZeroOutside) {
  OpHarness h(31);
  std::uniform_int_distribution<int> size(1, 6), halo(0, 2);
  for (int i = 0; i < 60; ++i) {
    const bool image = i % 2 == 0;
    Shape shape{size(h.engine()), size(h.engine())};
    if (image) shape = {shape[0], shape[1], size(h.engine()), size(h.engine())};
    std::uniform_int_distribution<std::int64_t> row(0, shape[0]);
    const auto [begin, end] = std::minmax({row(h.engine()), row(h.engine())});
    check_gradient(h, shape, begin, end, image ? halo(h.engine()) : 0, image ? halo(h.engine()) : 0,
                   std::to_string(i));
  }
  check_gradient(h, {0, 3}, 0, 0, 0, 0, "empty");
}

TEST(Slice, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const auto x = h.random("x", {5, 3}), g = h.random("g", {2, 3});
  slice(h, x, 1, 3);
  const auto dx = h.gradient({g}, {true}).front();
  EXPECT_EQ(h.graph()[dx].shape, Shape({5, 3}));
  const auto expected =
      numeric_gradient([](const std::vector<double>& v) { return rows_of(v, 5, 1, 3); },
                       as_doubles(h.read<float>(x)), as_doubles(h.read<float>(g)));
  expect_close(h.read<float>(dx), expected, 1e-6);
  EXPECT_FALSE(h.gradient({g}, {false}).front());
}

TEST(Slice, RefusesRowsThatAreNotThere) {
  OpHarness h;
  const auto x = h.random("x", {4, 3}), number = h.random("number", {});
  const auto labels = h.declare("labels", DType::int32, {2});
  const std::string expected = "; expected 0 ≤ begin ≤ end ≤ 4, as x has the shape [4, 3]";
  expect_error([&] { slice(h, x, -1, 2); }, "slice: rows -1 to 2" + expected);
  expect_error([&] { slice(h, x, 3, 2); }, "slice: rows 3 to 2" + expected);
  expect_error([&] { slice(h, x, 0, 5); }, "slice: rows 0 to 5" + expected);
  expect_error([&] { slice(h, number, 0, 0); },
               "slice: operand 'x' (number) of shape []; expected rank 1 or more, [R, …]");
  const auto grad = [&](ValueId gradient, std::int64_t begin, std::int64_t rows) {
    h.op("slice_grad", {gradient}, {{"begin", begin}, {"rows", rows}});
  };
  expect_error([&] { grad(x, 2, 5); },
               "slice_grad: 4 rows from begin=2 in rows=5; expected 0 ≤ begin ≤ rows − 4");
  expect_error([&] { grad(x, -1, 5); },
               "slice_grad: 4 rows from begin=-1 in rows=5; expected 0 ≤ begin ≤ rows − 4");
  expect_error([&] { grad(x, 0, 3); },
               "slice_grad: 4 rows from begin=0 in rows=3; expected 0 ≤ begin ≤ rows − 4");
  expect_error(
      [&] { grad(number, 0, 3); },
      "slice_grad: operand 'gradient' (number) of shape []; expected rank 1 or more, [R, …]");
  expect_error([&] { grad(labels, 0, 3); },
               "slice_grad: operand 'gradient' (labels) of type int32; expected float32");
}

}  // namespace
}  // namespace arenite::codelets::testing
