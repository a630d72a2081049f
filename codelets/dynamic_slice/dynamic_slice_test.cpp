#include "codelets/dynamic_rows.hpp"
#include "codelets/testing.hpp"

#include <limits>
#include <numeric>

namespace arenite::codelets::testing {
namespace {

using runtime::StatusWord;

/// Slices of one value: their begin can be moved.
struct Slice {
  OpHarness& h;
  ValueId begin, y;

  Slice(OpHarness& harness, ValueId x, std::int64_t rows, const std::string& tag = {})
      : h(harness), begin(h.declare("begin" + tag, DType::int64, {1})) {
    y = h.op("dynamic_slice", {x, begin}, {{"rows", rows}}).front();
  }

  std::uint64_t from(std::int64_t row) {
    h.write<std::int64_t>(begin, {row});
    return h.run("plain");
  }
};

/// Rows [begin, begin + count) of a dense vector.
template <class T>
std::vector<T> rows_of(const std::vector<T>& x, std::int64_t rows, std::int64_t begin,
                       std::int64_t count) {
  const std::int64_t row = rows == 0 ? 0 : static_cast<std::int64_t>(x.size()) / rows;
  return {x.begin() + begin * row, x.begin() + (begin + count) * row};
}

/// From every row that there is, and from some that there are not.
template <class T>
void check(OpHarness& h, const Shape& shape, std::int64_t rows, int in, int out,
           const std::string& tag) {
  SCOPED_TRACE(std::to_string(rows) + " of " + std::string(to_string(dtype_of<T>)) +
               to_string(shape));
  const auto x = h.declare("x" + tag, dtype_of<T>, shape, in);
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), T{1});
  h.write(x, values);
  Slice slice(h, x, rows, tag);
  h.set_halo(slice.y, out);
  ASSERT_EQ(h.graph()[slice.y].type, dtype_of<T>);
  ASSERT_EQ(h.graph()[slice.y].shape, shape.with(0, rows));
  const std::int64_t last = shape[0] - rows;
  for (std::int64_t begin = 0; begin <= last; ++begin) {
    ASSERT_EQ(slice.from(begin), StatusWord::ok);
    EXPECT_EQ(h.read<T>(slice.y), rows_of(values, shape[0], begin, rows));
    EXPECT_TRUE(out == 0 || h.halo_is_zero<T>(slice.y));
  }
  for (std::int64_t begin : {std::int64_t{-1}, last + 1, std::numeric_limits<std::int64_t>::min(),
                             std::numeric_limits<std::int64_t>::max()}) {
    const std::uint64_t status = slice.from(begin);
    EXPECT_EQ(StatusWord::op_of(status), h.graph()[graph::Graph::body].ops.back().index);
    EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(RowsFault::begin));
    EXPECT_EQ(h.read<T>(slice.y),
              std::vector<T>(static_cast<std::size_t>(shape.with(0, rows).elements()), T{0}));
    EXPECT_TRUE(out == 0 || h.halo_is_zero<T>(slice.y));
  }
}

TEST(DynamicSlice, TakesRowsOfEveryTypeAndShape) {
  OpHarness h;
  int number = 0;
  for (const Shape& shape : {Shape{7}, Shape{5, 3}, Shape{4, 2, 3}, Shape{3, 2, 3, 2},
                             Shape{6, 2, 1, 3, 2}, Shape{0, 3}, Shape{4, 0}}) {
    for (std::int64_t rows = 0; rows <= shape[0]; ++rows) {
      const std::string tag = std::to_string(number++);
      check<float>(h, shape, rows, 0, 0, "f" + tag);
      check<double>(h, shape, rows, 0, 0, "d" + tag);
      check<std::int64_t>(h, shape, rows, 0, 0, "l" + tag);
      check<std::int32_t>(h, shape, rows, 0, 0, "i" + tag);
      check<std::uint8_t>(h, shape, rows, 0, 0, "u" + tag);
    }
  }
}

TEST(DynamicSlice, TakesImagesWithAnyHalos) {
  OpHarness h;
  for (int in : {0, 1, 2}) {
    for (int out : {0, 1, 2}) {
      const std::string tag = std::to_string(in) + std::to_string(out);
      check<float>(h, {4, 3, 2, 5}, 2, in, out, "f" + tag);
      check<double>(h, {3, 1, 2, 1}, 3, in, out, "d" + tag);
      check<std::uint8_t>(h, {3, 2, 2, 3}, 0, in, out, "u" + tag);
    }
  }
}

TEST(DynamicSlice, GradientAgreesWithCentralDifferences) {
  OpHarness h;
  const auto x = h.random("x", {5, 3}), g = h.random("g", {2, 3});
  Slice slice(h, x, 2);
  for (std::int64_t begin : {0, 1, 3}) {
    slice.from(begin);
    const auto gradients = h.gradient({g}, {true, false});
    EXPECT_EQ(h.graph()[gradients[0]].shape, Shape({5, 3}));
    EXPECT_FALSE(gradients[1]);
    const auto expected =
        numeric_gradient([&](const std::vector<double>& v) { return rows_of(v, 5, begin, 2); },
                         as_doubles(h.read<float>(x)), as_doubles(h.read<float>(g)));
    expect_close(h.read<float>(gradients[0]), expected, 1e-6);
  }
  const std::size_t ops = h.graph().op_count();
  EXPECT_FALSE(h.gradient({g}, {false, false})[0]);
  EXPECT_FALSE(h.gradient({{}}, {true, false})[0]);
  EXPECT_EQ(h.graph().op_count(), ops);
}

TEST(DynamicSlice, OnlyFloatsHaveAGradient) {
  OpHarness h;
  const auto x = h.declare("x", DType::float64, {5, 3}), g = h.declare("g", DType::float64, {2, 3});
  Slice slice(h, x, 2);
  const auto gradient = h.gradient({g}, {true, false})[0];
  ASSERT_TRUE(gradient);
  EXPECT_EQ(h.graph()[gradient].type, DType::float64);
  OpHarness other;
  const auto i = other.declare("i", DType::int32, {5, 3}),
             j = other.declare("j", DType::int32, {2, 3});
  Slice integers(other, i, 2);
  EXPECT_FALSE(other.gradient({j}, {true, false})[0]);
}

TEST(DynamicSlice, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {4, 3}), number = h.random("number", {});
  const auto begin = h.declare("begin", DType::int64, {1}),
             two = h.declare("two", DType::int64, {2}),
             small = h.declare("small", DType::int32, {1});
  const auto slice = [&](ValueId of, ValueId from, std::int64_t rows) {
    h.op("dynamic_slice", {of, from}, {{"rows", rows}});
  };
  const std::string expected = "; expected 0 ≤ rows ≤ 4, as x has the shape [4, 3]";
  expect_error([&] { slice(x, begin, -1); }, "dynamic_slice: rows=-1" + expected);
  expect_error([&] { slice(x, begin, 5); }, "dynamic_slice: rows=5" + expected);
  expect_error([&] { slice(number, begin, 0); },
               "dynamic_slice: operand 'x' (number) of shape []; expected rank 1 or more, [R, …]");
  expect_error([&] { slice(x, two, 1); },
               "dynamic_slice: operand 'begin' (two) of shape [2]; expected [1], the index of the "
               "first row");
  expect_error([&] { slice(x, small, 1); },
               "dynamic_slice: operand 'begin' (small) of type int32; expected int64");
}

}  // namespace
}  // namespace arenite::codelets::testing
