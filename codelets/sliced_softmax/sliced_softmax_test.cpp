#include "codelets/sliced_softmax/sliced_softmax.hpp"
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using runtime::StatusWord;
using Values = std::vector<double>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

Values reference(const Values& x, std::int64_t length, std::int64_t prefix) {
  Values y = x;
  const auto step = static_cast<std::ptrdiff_t>(length);
  for (auto row = y.begin(); row != y.end(); row += step) {
    const auto end = row + static_cast<std::ptrdiff_t>(prefix);
    double largest = 0, sum = 0;
    if (row != end) largest = *std::max_element(row, end);
    for (auto v = row; v != end; ++v) sum += * v = std::exp(*v - largest);
    for (auto v = row; v != end; ++v) *v /= sum;
  }
  return y;
}

Values gradient_of(const Values& g, const Values& x, std::int64_t length, std::int64_t prefix) {
  const Values y = reference(x, length, prefix);
  Values dx = g;
  for (std::size_t from = 0; from < x.size(); from += static_cast<std::size_t>(length)) {
    const std::size_t end = from + static_cast<std::size_t>(prefix);
    double dot = 0;
    for (std::size_t i = from; i < end; ++i) dot += g[i] * y[i];
    for (std::size_t i = from; i < end; ++i) dx[i] = y[i] * (g[i] - dot);
  }
  return dx;
}

std::vector<Shape> shapes(OpHarness& h) {
  std::vector<Shape> all{{1},    {16},   {3, 1}, {5, 64}, {2, 1000},    {64, 10},
                         {0, 5}, {4, 0}, {0},    {33},    {2, 1, 3, 17}};
  std::uniform_int_distribution<int> size(1, 6), length(1, 70);
  for (int i = 0; i < 40; ++i) {
    all.push_back(i % 2 == 0 ? Shape{size(h.engine()), length(h.engine())}
                             : Shape{size(h.engine()), size(h.engine()), length(h.engine())});
  }
  return all;
}

/// Forward and backward of the op that was added last; `x` is its operand, `y` its result.
void check(OpHarness& h, ValueId x, ValueId y, std::int64_t prefix, std::vector<bool> wanted,
           const std::string& tag) {
  SCOPED_TRACE("prefix " + std::to_string(prefix));
  const Shape shape = h.graph()[x].shape;
  ASSERT_EQ(h.run("plain"), StatusWord::ok);
  const Values input = as_doubles(h.read<float>(x));
  expect_close(h.read<float>(y), reference(input, shape.at(-1), prefix), 1e-6);
  const auto g = h.random("g" + tag, shape);
  const auto dx = h.gradient({g}, std::move(wanted)).front();
  const Values expected = gradient_of(as_doubles(h.read<float>(g)), input, shape.at(-1), prefix);
  // Of one element the gradient is 0: its size is that of what is subtracted.
  const auto found = h.read<float>(dx);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(static_cast<double>(found[i]), expected[i], 5e-7) << i;
}

TEST(SlicedSoftmax, MatchesTheReferenceForEveryPrefix) {
  OpHarness h(3);
  int number = 0;
  for (const Shape& shape : shapes(h)) {
    SCOPED_TRACE(to_string(shape));
    const std::int64_t last = shape.at(-1);
    std::uniform_int_distribution<std::int64_t> any(0, last);
    for (const std::int64_t prefix : {std::int64_t{0}, last, any(h.engine())}) {
      const std::string tag = std::to_string(number++);
      const auto x = h.random("x" + tag, shape, -4, 4);
      check(h, x, h.op("sliced_softmax", {x}, {{"prefix", prefix}}).front(), prefix, {true},
            "a" + tag);
      const auto value = h.declare("prefix" + tag, DType::int64, {1});
      h.write<std::int64_t>(value, {prefix});
      check(h, x, h.op("sliced_softmax", {x, value}).front(), prefix, {true, false}, "v" + tag);
    }
  }
}

TEST(SlicedSoftmax, GradientAgreesWithCentralDifferences) {
  OpHarness h(5);
  for (const std::int64_t prefix : {0, 1, 5, 7}) {
    const std::string tag = std::to_string(prefix);
    const auto x = h.random("x" + tag, {2, 3, 7}, -2, 2), g = h.random("g" + tag, {2, 3, 7});
    h.op("sliced_softmax", {x}, {{"prefix", prefix}});
    h.run("plain");
    const auto dx = h.gradient({g}, {true}).front();
    const auto f = [&](const Values& v) { return reference(v, 7, prefix); };
    expect_close(h.read<float>(dx),
                 numeric_gradient(f, as_doubles(h.read<float>(x)), as_doubles(h.read<float>(g))),
                 1e-6);
  }
}

TEST(SlicedSoftmax, IsStable) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {4, 4});
  h.write<float>(x, {1e30f, 1e30f, -1e30f, 1e30f, -5000, -5000, -5000, 7,  //
                     88, 188, -inf, inf, -inf, 0, -inf, nan});
  const auto y = h.op("sliced_softmax", {x}, {{"prefix", std::int64_t{3}}}).front();
  h.run("plain");
  const Values expected{0.5, 0.5, 0, 1e30, 1 / 3.0, 1 / 3.0, 1 / 3.0, 7, 0, 1, 0};
  const auto out = h.read<float>(y);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_FLOAT_EQ(out[i], static_cast<float>(expected[i])) << i;
  EXPECT_EQ(out[11], inf);
  EXPECT_EQ(std::vector<float>(out.begin() + 12, out.begin() + 15), (std::vector<float>{0, 1, 0}));
  EXPECT_TRUE(std::isnan(out[15]));
}

TEST(SlicedSoftmax, NaNAndInfinityReachTheWholePrefixOfTheirRow) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {4, 3});
  h.write<float>(x, {nan, 1, 2, 0, inf, 2, -inf, -inf, 2, 1, 1, 2});
  const auto y = h.op("sliced_softmax", {x}, {{"prefix", std::int64_t{2}}}).front();
  h.run("plain");
  const auto out = h.read<float>(y);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(out[i]), i % 3 < 2) << i;
  EXPECT_EQ(std::vector<float>(out.begin() + 9, out.end()), (std::vector<float>{0.5, 0.5, 2}));
}

TEST(SlicedSoftmax, ReportsAPrefixOutOfRange) {
  OpHarness h;
  for (const Shape& shape : {Shape{4, 5}, Shape{3, 0}}) {
    const std::string tag = std::to_string(shape[0]);
    const auto x = h.random("x" + tag, shape), g = h.random("g" + tag, shape),
               value = h.declare("prefix" + tag, DType::int64, {1});
    const auto expect_copy = [&](const std::string& op, std::vector<ValueId> operands) {
      const ValueId source = operands.front();
      const auto result = h.op(op, std::move(operands)).front();
      for (const std::int64_t bad :
           {std::int64_t{-1}, shape.at(-1) + 1, std::numeric_limits<std::int64_t>::min(),
            std::numeric_limits<std::int64_t>::max()}) {
        h.write<std::int64_t>(value, {bad});
        const std::uint64_t status = h.run("plain");
        EXPECT_EQ(StatusWord::op_of(status), h.graph()[graph::Graph::body].ops.back().index);
        EXPECT_EQ(StatusWord::code_of(status), static_cast<std::uint32_t>(PrefixFault::range));
        EXPECT_EQ(h.read<float>(result), h.read<float>(source));
      }
      h.write<std::int64_t>(value, {shape.at(-1)});
      EXPECT_EQ(h.run("plain"), StatusWord::ok);
    };
    expect_copy("sliced_softmax", {x, value});
    expect_copy("sliced_softmax_grad", {g, x, value});
  }
  for (const char* op : {"sliced_softmax", "sliced_softmax_grad"}) {
    const graph::OpView any(h.graph(), h.graph()[h.graph()[graph::Graph::body].ops.back()]);
    EXPECT_EQ(
        operators().at(op)->fault(any, static_cast<std::uint32_t>(PrefixFault::range), {}).found,
        "a prefix that is negative or longer than the last axis");
  }
}

TEST(SlicedSoftmax, RunsInPlace) {
  OpHarness h;
  for (const std::int64_t prefix : {0, 1, 16, 20, 33}) {
    const std::string tag = std::to_string(prefix);
    const graph::Attributes attributes{{"prefix", prefix}};
    const auto x = h.random("x" + tag, {3, 33}, -3, 3);
    const auto apart = h.op("sliced_softmax", {x}, attributes).front();
    h.run("plain");
    const auto y = h.op("sliced_softmax", {x}, attributes).front();
    h.in_place(0, 0);
    h.run("plain");
    EXPECT_EQ(h.read<float>(y), h.read<float>(apart));
    for (std::size_t operand : {0u, 1u}) {
      const std::string number = tag + "." + std::to_string(operand);
      const auto g = h.random("g" + number, {3, 33}), of = h.random("of" + number, {3, 33}, 0, 1);
      const auto dx = h.op("sliced_softmax_grad", {g, of}, attributes).front();
      h.run("plain");
      const auto together = h.op("sliced_softmax_grad", {g, of}, attributes).front();
      h.in_place(0, operand);
      h.run("plain");
      EXPECT_EQ(h.read<float>(together), h.read<float>(dx));
    }
  }
}

TEST(SlicedSoftmax, BuildsOnlyWantedGradients) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), value = h.declare("value", DType::int64, {1});
  h.op("sliced_softmax", {x, value});
  const std::size_t ops = h.graph().op_count();
  h.gradient({x}, {false, false});
  h.gradient({ValueId{}}, {true, false});
  EXPECT_EQ(h.graph().op_count(), ops);
  const auto found = h.gradient({x}, {true, false});
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(h.graph()[h.graph()[found[0]].producer].operands[2], value);
}

TEST(SlicedSoftmax, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), y = h.random("y", {3, 2}), s = h.random("s", {});
  const auto d = h.declare("d", DType::float64, {2, 3}), n = h.declare("n", DType::int64, {1}),
             two = h.declare("two", DType::int64, {2}),
             small = h.declare("small", DType::int32, {1});
  const auto slice = [&](std::vector<ValueId> operands, std::int64_t prefix = -1) {
    h.op("sliced_softmax", std::move(operands), {{"prefix", prefix}});
  };
  expect_error([&] { slice({x}); },
               "sliced_softmax: neither attribute 'prefix' nor operand 'prefix_value'; expected "
               "one of the two");
  expect_error(
      [&] {
        slice({x, n}, 2);
      },
      "sliced_softmax: prefix=2 and operand 'prefix_value' (n); expected only one of the "
      "two");
  const std::string expected = "; expected 0 ≤ prefix ≤ 3, as 'x' has the shape [2, 3]";
  expect_error([&] { slice({x}, 4); }, "sliced_softmax: prefix=4" + expected);
  expect_error([&] { slice({x}, -2); }, "sliced_softmax: prefix=-2" + expected);
  expect_error(
      [&] {
        slice({x, two});
      },
      "sliced_softmax: operand 'prefix_value' (two) of shape [2]; expected [1], the "
      "length of the prefix");
  expect_error(
      [&] {
        slice({x, small});
      },
      "sliced_softmax: operand 'prefix_value' (small) of type int32; expected int64");
  expect_error([&] { slice({d}, 1); },
               "sliced_softmax: operand 'x' (d) of type float64; expected float32");
  expect_error([&] { slice({s}, 0); },
               "sliced_softmax: operand 'x' (s) of shape []; expected rank 1 or more, [..., C]");
  const auto grad = [&](std::vector<ValueId> operands, std::int64_t prefix = -1) {
    h.op("sliced_softmax_grad", std::move(operands), {{"prefix", prefix}});
  };
  expect_error(
      [&] {
        grad({x, y}, 1);
      },
      "sliced_softmax_grad: operand 'y' (y) of shape [3, 2]; expected [2, 3], the shape "
      "of 'gradient'");
  expect_error(
      [&] {
        grad({x, x}, 9);
      },
      "sliced_softmax_grad: prefix=9; expected 0 ≤ prefix ≤ 3, as 'gradient' has the "
      "shape [2, 3]");
  expect_error(
      [&] {
        grad({x, x});
      },
      "sliced_softmax_grad: neither attribute 'prefix' nor operand 'prefix_value'; "
      "expected one of the two");
}

}  // namespace
}  // namespace arenite::codelets::testing
