#include "codelets/dynamic_rows.hpp"
#include "codelets/testing.hpp"

#include <limits>
#include <numeric>

namespace arenite::codelets::testing {
namespace {

using runtime::StatusWord;

/// x with some of its rows replaced, as dense vectors.
template <class T>
std::vector<T> replaced(std::vector<T> x, std::int64_t rows, const std::vector<T>& replacement,
                        std::int64_t begin) {
  const std::int64_t row = rows == 0 ? 0 : static_cast<std::int64_t>(x.size()) / rows;
  std::copy(replacement.begin(), replacement.end(), x.begin() + begin * row);
  return x;
}

struct Halos {
  int x = 0, replacement = 0, y = 0;
};

/// From every row that there is, and from some that there are not.
template <class T>
void check(OpHarness& h, const Shape& shape, std::int64_t rows, bool in_place,
           const std::string& tag, Halos halos = {}) {
  SCOPED_TRACE(std::to_string(rows) + " of " + std::string(to_string(dtype_of<T>)) +
               to_string(shape) + (in_place ? " in place" : ""));
  const auto x = h.declare("x" + tag, dtype_of<T>, shape, halos.x),
             r = h.declare("r" + tag, dtype_of<T>, shape.with(0, rows), halos.replacement),
             begin = h.declare("begin" + tag, DType::int64, {1});
  std::vector<T> before(static_cast<std::size_t>(shape.elements())),
      replacement(static_cast<std::size_t>(shape.with(0, rows).elements()));
  std::iota(before.begin(), before.end(), T{1});
  std::iota(replacement.begin(), replacement.end(), T{101});
  h.write(r, replacement);
  const auto y = h.op("replace_slice", {x, r, begin}).front();
  ASSERT_EQ(h.graph()[y].type, dtype_of<T>);
  ASSERT_EQ(h.graph()[y].shape, shape);
  h.set_halo(y, in_place ? halos.x : halos.y);
  if (in_place) h.in_place(0, 0);
  const auto from = [&](std::int64_t row) {
    h.write(x, before);
    h.write<std::int64_t>(begin, {row});
    const std::uint64_t status = h.run("plain");
    EXPECT_TRUE(h.graph()[y].layout.halo == 0 || h.halo_is_zero<T>(y));
    return status;
  };
  const std::int64_t last = shape[0] - rows;
  for (std::int64_t row = 0; row <= last; ++row) {
    ASSERT_EQ(from(row), StatusWord::ok);
    EXPECT_EQ(h.read<T>(y), replaced(before, shape[0], replacement, row));
  }
  for (std::int64_t row : {std::int64_t{-1}, last + 1, std::numeric_limits<std::int64_t>::min(),
                           std::numeric_limits<std::int64_t>::max()}) {
    const std::uint64_t status = from(row);
    EXPECT_EQ(StatusWord::op_of(status), h.graph()[graph::Graph::body].ops.back().index);
    EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(RowsFault::begin));
    EXPECT_EQ(h.read<T>(y), before);
  }
}

TEST(ReplaceSlice, ReplacesRowsOfEveryTypeAndShape) {
  OpHarness h;
  int number = 0;
  for (const Shape& shape : {Shape{7}, Shape{5, 3}, Shape{4, 2, 3}, Shape{3, 2, 3, 2},
                             Shape{6, 2, 1, 3, 2}, Shape{0, 3}, Shape{4, 0}}) {
    for (std::int64_t rows = 0; rows <= shape[0]; ++rows) {
      for (bool in_place : {false, true}) {
        const std::string tag = std::to_string(number++);
        check<float>(h, shape, rows, in_place, "f" + tag);
        check<double>(h, shape, rows, in_place, "d" + tag);
        check<std::int64_t>(h, shape, rows, in_place, "l" + tag);
        check<std::int32_t>(h, shape, rows, in_place, "i" + tag);
        check<std::uint8_t>(h, shape, rows, in_place, "u" + tag);
      }
    }
  }
}

TEST(ReplaceSlice, TakesImagesWithAnyHalos) {
  OpHarness h(7);
  std::uniform_int_distribution<int> halo(0, 2);
  for (int round = 0; round < 20; ++round) {
    const Halos halos{halo(h.engine()), halo(h.engine()), halo(h.engine())};
    const std::string tag = std::to_string(round);
    const bool in_place = round % 2 == 0;
    check<float>(h, {4, 3, 2, 5}, 2, in_place, "f" + tag, halos);
    check<double>(h, {3, 1, 2, 1}, 3, in_place, "d" + tag, halos);
    check<std::uint8_t>(h, {3, 2, 2, 3}, 0, in_place, "u" + tag, halos);
  }
}

TEST(ReplaceSlice, TakesTheEndThatFollows) {
  OpHarness h;
  const auto x = h.random("x", {5, 2}), r = h.random("r", {2, 2}),
             begin = h.declare("begin", DType::int64, {1}),
             end = h.declare("end", DType::int64, {1});
  const auto y = h.op("replace_slice", {x, r, begin, end}).front();
  const auto before = h.read<float>(x), replacement = h.read<float>(r);
  h.write<std::int64_t>(begin, {3});
  h.write<std::int64_t>(end, {5});
  EXPECT_EQ(h.run("plain"), StatusWord::ok);
  EXPECT_EQ(h.read<float>(y), replaced(before, 5, replacement, 3));
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t wrong : {std::int64_t{4}, std::int64_t{6}, std::int64_t{3}, lowest}) {
    h.write<std::int64_t>(end, {wrong});
    EXPECT_EQ(StatusWord::code_of(h.run("plain")), static_cast<std::uint32_t>(RowsFault::end));
    EXPECT_EQ(h.read<float>(y), before);
  }
  h.write<std::int64_t>(begin, {4});
  EXPECT_EQ(StatusWord::code_of(h.run("plain")), static_cast<std::uint32_t>(RowsFault::begin));
  expect_error(
      [&] {
        h.op("replace_slice", {x, r, begin, x});
      },
      "replace_slice: operand 'end' (x) of type float32; expected int64");
}

TEST(ReplaceSlice, MayReplaceRowsByTheValuesOwn) {
  OpHarness h;
  const auto x = h.random("x", {4, 3}), begin = h.declare("begin", DType::int64, {1});
  const auto y = h.op("replace_slice", {x, x, begin}).front();
  EXPECT_EQ(h.run("plain"), StatusWord::ok);
  EXPECT_EQ(h.read<float>(y), h.read<float>(x));
}

TEST(ReplaceSlice, GradientsAgreeWithCentralDifferences) {
  OpHarness h;
  const auto x = h.random("x", {5, 3}), r = h.random("r", {2, 3}), g = h.random("g", {5, 3}),
             begin = h.declare("begin", DType::int64, {1});
  h.op("replace_slice", {x, r, begin});
  const auto xs = as_doubles(h.read<float>(x)), rs = as_doubles(h.read<float>(r)),
             gs = as_doubles(h.read<float>(g));
  for (std::int64_t row : {0, 1, 3}) {
    h.write<std::int64_t>(begin, {row});
    const auto gradients = h.gradient({g}, {true, true, false});
    EXPECT_FALSE(gradients[2]);
    expect_close(h.read<float>(gradients[0]),
                 numeric_gradient([&](const auto& v) { return replaced(v, 5, rs, row); }, xs, gs),
                 1e-6);
    expect_close(h.read<float>(gradients[1]),
                 numeric_gradient([&](const auto& v) { return replaced(xs, 5, v, row); }, rs, gs),
                 1e-6);
  }
}

TEST(ReplaceSlice, OnlyWantedGradientsAreMade) {
  OpHarness h;
  const auto x = h.random("x", {5, 3}), r = h.random("r", {2, 3}), g = h.random("g", {5, 3}),
             begin = h.declare("begin", DType::int64, {1});
  h.op("replace_slice", {x, r, begin});
  const auto ops = [&] { return h.graph().op_count(); };
  const std::size_t before = ops();
  const auto of_x = h.gradient({g}, {true, false, false});
  EXPECT_TRUE(of_x[0] && !of_x[1] && !of_x[2]);
  EXPECT_EQ(ops(), before + 2);
  const auto of_r = h.gradient({g}, {false, true, false});
  EXPECT_TRUE(!of_r[0] && of_r[1] && !of_r[2]);
  EXPECT_EQ(ops(), before + 3);
  EXPECT_FALSE(h.gradient({{}}, {true, true, false})[0]);
  EXPECT_EQ(ops(), before + 3);
  // Those of floats are of their type, integers have none.
  const auto d = h.declare("d", DType::float64, {5}), i = h.declare("i", DType::int32, {5});
  h.op("replace_slice", {d, d, begin});
  const auto of_d = h.gradient({d}, {true, true, false});
  ASSERT_TRUE(of_d[0] && of_d[1]);
  EXPECT_EQ(h.graph()[of_d[0]].type, DType::float64);
  EXPECT_EQ(h.graph()[of_d[1]].type, DType::float64);
  h.op("replace_slice", {i, i, begin});
  EXPECT_FALSE(h.gradient({i}, {true, true, false})[0]);
}

TEST(ReplaceSlice, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {4, 3}), number = h.random("number", {}),
             two = h.random("two", {2, 3}), wide = h.random("wide", {2, 4}),
             more = h.random("more", {5, 3}), deep = h.random("deep", {2, 3, 1});
  const auto begin = h.declare("begin", DType::int64, {1}),
             pair = h.declare("pair", DType::int64, {2}),
             small = h.declare("small", DType::int32, {1}),
             integers = h.declare("integers", DType::int32, {2, 3});
  const auto replace = [&](ValueId of, ValueId by, ValueId from) {
    h.op("replace_slice", {of, by, from});
  };
  const std::string by = "replace_slice: operand 'replacement' ",
                    expected = "; expected at most 4 rows like those of 'x', of the shape [4, 3]";
  expect_error([&] { replace(x, wide, begin); }, by + "(wide) of shape [2, 4]" + expected);
  expect_error([&] { replace(x, more, begin); }, by + "(more) of shape [5, 3]" + expected);
  expect_error([&] { replace(x, deep, begin); }, by + "(deep) of shape [2, 3, 1]" + expected);
  expect_error([&] { replace(x, number, begin); }, by + "(number) of shape []" + expected);
  expect_error([&] { replace(x, integers, begin); },
               by + "(integers) of type int32; expected float32");
  expect_error([&] { replace(number, two, begin); },
               "replace_slice: operand 'x' (number) of shape []; expected rank 1 or more, [R, …]");
  expect_error([&] { replace(x, two, pair); },
               "replace_slice: operand 'begin' (pair) of shape [2]; expected [1], the index of the "
               "first row");
  expect_error([&] { replace(x, two, small); },
               "replace_slice: operand 'begin' (small) of type int32; expected int64");
}

}  // namespace
}  // namespace arenite::codelets::testing
