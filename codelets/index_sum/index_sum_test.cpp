#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

struct Index {
  OpHarness h;
  ValueId a = h.declare("a", DType::int64, {1}), b = h.declare("b", DType::int64, {1});

  std::int64_t sum(std::int64_t of, std::int64_t and_of, const graph::Attributes& attributes) {
    return run({a, b}, of, and_of, attributes);
  }
  std::int64_t alone(std::int64_t of, const graph::Attributes& attributes = {}) {
    return run({a}, of, 0, attributes);
  }

 private:
  std::int64_t run(std::vector<ValueId> operands, std::int64_t of, std::int64_t and_of,
                   const graph::Attributes& attributes) {
    h.write<std::int64_t>(a, {of});
    h.write<std::int64_t>(b, {and_of});
    const auto y = h.op("index_sum", std::move(operands), attributes).front();
    EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
    EXPECT_EQ(h.graph()[y].type, DType::int64);
    EXPECT_EQ(h.graph()[y].shape, Shape{1});
    return h.read<std::int64_t>(y).front();
  }
};

graph::Attributes by(std::int64_t scale, std::int64_t offset) {
  return {{"scale", scale}, {"offset", offset}};
}

TEST(IndexSum, AddsScalesAndMoves) {
  Index index;
  EXPECT_EQ(index.sum(5, 7, {}), 12);
  EXPECT_EQ(index.sum(5, 7, by(-3, 100)), 84);
  EXPECT_EQ(index.sum(-5, -7, by(0, 0)), -5);
  EXPECT_EQ(index.alone(5), 5);
  EXPECT_EQ(index.alone(5, {{"offset", std::int64_t{-6}}}), -1);
  // Nothing is there to be scaled.
  EXPECT_EQ(index.alone(5, by(9, 1)), 6);
}

TEST(IndexSum, TakesAnAbsentOperandByName) {
  OpHarness h;
  const auto a = h.declare("a", DType::int64, {1});
  h.write<std::int64_t>(a, {3});
  const auto y = h.op("index_sum", {a, ValueId{}}, by(2, 1)).front();
  h.run("plain");
  EXPECT_EQ(h.read<std::int64_t>(y).front(), 4);
}

TEST(IndexSum, MayAddAValueToItself) {
  OpHarness h;
  const auto a = h.declare("a", DType::int64, {1});
  h.write<std::int64_t>(a, {3});
  const auto y = h.op("index_sum", {a, a}, by(10, 0)).front();
  h.run("plain");
  EXPECT_EQ(h.read<std::int64_t>(y).front(), 33);
}

TEST(IndexSum, WrapsAround) {
  Index index;
  EXPECT_EQ(index.sum(most, 1, {}), least);
  EXPECT_EQ(index.sum(0, least, by(-1, 0)), least);
  EXPECT_EQ(index.sum(0, most, by(most, 0)), 1);
  EXPECT_EQ(index.alone(least, {{"offset", std::int64_t{-1}}}), most);
}

TEST(IndexSum, HasNoGradient) { EXPECT_FALSE(operators().at("index_sum")->gradient); }

TEST(IndexSum, RefusesWhatIsNoIndex) {
  OpHarness h;
  const auto a = h.declare("a", DType::int64, {1}), two = h.declare("two", DType::int64, {2}),
             number = h.declare("number", DType::int64, {}),
             small = h.declare("small", DType::int32, {1});
  const auto sum = [&](std::vector<ValueId> operands) { h.op("index_sum", std::move(operands)); };
  expect_error([&] { sum({two}); },
               "index_sum: operand 'a' (two) of shape [2]; expected [1], one index");
  expect_error(
      [&] {
        sum({a, number});
      },
      "index_sum: operand 'b' (number) of shape []; expected [1], one index");
  expect_error(
      [&] {
        sum({small, a});
      },
      "index_sum: operand 'a' (small) of type int32; expected int64");
  expect_error(
      [&] {
        sum({a, small});
      },
      "index_sum: operand 'b' (small) of type int32; expected int64");
  expect_error([&] { sum({a, a, a}); }, "index_sum: 3 operands; expected 1 or 2 (a, b?)");
}

}  // namespace
}  // namespace arenite::codelets::testing
