#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

TEST(Accumulate, AddsEveryType) {
  OpHarness h(3);
  for (std::int64_t n : {1, 2, 7, 16, 33, 1000}) {
    const Shape shape{n};
    const std::string tag = std::to_string(n);
    const auto size = static_cast<std::size_t>(n);

    const auto a = h.random("a" + tag, shape), b = h.random("b" + tag, shape);
    const auto before = h.read<float>(a), value = h.read<float>(b);
    h.op("accumulate", {a, b});
    EXPECT_EQ(h.run("tiles"), runtime::StatusWord::ok);
    h.run("tiles");
    const auto after = h.read<float>(a);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(after[i], before[i] + value[i] + value[i]);
    EXPECT_EQ(h.read<float>(b), value);

    const auto c = h.declare("c" + tag, DType::int64, shape),
               d = h.declare("d" + tag, DType::int64, shape);
    h.write<std::int64_t>(c, std::vector<std::int64_t>(size, std::int64_t{1} << 40));
    h.write<std::int64_t>(d, std::vector<std::int64_t>(size, 3));
    h.op("accumulate", {c, d});
    h.run("tiles");
    EXPECT_EQ(h.read<std::int64_t>(c),
              std::vector<std::int64_t>(size, (std::int64_t{1} << 40) + 3));

    const auto e = h.declare("e" + tag, DType::float64, shape),
               f = h.declare("f" + tag, DType::float64, shape);
    h.write<double>(e, std::vector<double>(size, 1e17));
    h.write<double>(f, std::vector<double>(size, 16));
    h.op("accumulate", {e, f});
    h.run("tiles");
    EXPECT_EQ(h.read<double>(e), std::vector<double>(size, 1e17 + 16));
  }
}

TEST(Accumulate, IntegersWrapAround) {
  OpHarness h;
  const auto total = h.declare("total", DType::int64, {1}),
             one = h.declare("one", DType::int64, {1});
  h.write<std::int64_t>(total, {std::numeric_limits<std::int64_t>::max()});
  h.write<std::int64_t>(one, {1});
  h.op("accumulate", {total, one});
  h.run("tiles");
  EXPECT_EQ(h.read<std::int64_t>(total).front(), std::numeric_limits<std::int64_t>::min());
}

TEST(Accumulate, AveragesKeepAShareOfTheMean) {
  OpHarness h;
  for (const float kept : {0.0f, 0.75f, 1.0f}) {
    const std::string tag = std::to_string(kept);
    const auto mean = h.random("mean" + tag, {5, 7}), value = h.random("value" + tag, {5, 7}),
               share = h.declare("kept" + tag, DType::float32, {1});
    h.write<float>(share, {kept});
    const auto before = h.read<float>(mean), now = h.read<float>(value);
    h.op("average", {mean, value, share});
    EXPECT_EQ(h.run("tiles"), runtime::StatusWord::ok);
    const auto after = h.read<float>(mean);
    for (std::size_t i = 0; i < after.size(); ++i)
      EXPECT_NEAR(after[i], kept * before[i] + (1 - kept) * now[i], 1e-7);
    if (kept != 0.75f) {
      EXPECT_EQ(after, kept == 0 ? now : before);
    }
  }
  const auto mean = h.random("mean", {3}), wide = h.random("wide", {3, 1}),
             two = h.random("two", {2});
  expect_error(
      [&] {
        h.op("average", {mean, wide, two});
      },
      "average: operand 'value' (wide) of shape [3, 1]; expected [3], the shape of "
      "'mean'");
  expect_error(
      [&] {
        h.op("average", {mean, mean, two});
      },
      "average: operand 'kept' (two) of shape [2]; expected [1], the share of the mean "
      "that stays");
}

TEST(Accumulate, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), b = h.random("b", {3, 2});
  const auto c = h.declare("c", DType::int32, {2, 3}), d = h.declare("d", DType::float64, {2, 3});
  expect_error(
      [&] {
        h.op("accumulate", {a, b});
      },
      "accumulate: operand 'value' (b) of shape [3, 2]; expected [2, 3], the shape of 'total'");
  expect_error(
      [&] {
        h.op("accumulate", {a, d});
      },
      "accumulate: operand 'value' (d) of type float64; expected float32");
  expect_error(
      [&] {
        h.op("accumulate", {c, c});
      },
      "accumulate: operand 'total' (c) of type int32; expected float32, float64 or int64");
}

TEST(Accumulate, LeavesATotalThatLiesElsewhere) {
  OpHarness h;
  h.updates_in_place = false;
  const auto total = h.random("total", {5}), value = h.random("value", {5});
  const auto before = h.read<float>(total), more = h.read<float>(value);
  const auto sum = h.op("accumulate", {total, value}).front();
  h.run("tiles");
  EXPECT_EQ(h.read<float>(total), before);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(h.read<float>(sum)[i], before[i] + more[i]);
  const auto gradient = h.random("gradient", {5});
  EXPECT_EQ(h.gradient({gradient}, {true, true}), (std::vector{gradient, gradient}));
}

}  // namespace
}  // namespace arenite::codelets::testing
