// Kernels, and what is refused; how it depends on the mode is in tests/dropout_test.cpp.
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

struct Dropout : ::testing::Test {
  OpHarness h{2};

  ValueId position(std::int64_t value) {
    const ValueId id = h.declare("at" + std::to_string(h.graph().value_count()), DType::int64, {1});
    h.write<std::int64_t>(id, {value});
    return id;
  }

  /// Of ones, by the first kernel.
  std::vector<float> dropped(const Shape& shape, std::int64_t at, const graph::Attributes& how) {
    const auto x = h.declare("x" + std::to_string(h.graph().value_count()), DType::float32, shape);
    h.write(x, std::vector<float>(static_cast<std::size_t>(shape.elements()), 1));
    const auto y = h.op("dropout_in_training", {x, position(at)}, how).front();
    EXPECT_EQ(h.run(h.cpu_kernels().front()), runtime::StatusWord::ok);
    return h.read<float>(y);
  }
};

/// A sample's numbers go by its place among all, in whichever batch and part of one it stands.
TEST_F(Dropout, GoesByTheSamplesPlace) {
  const graph::Attributes how{{"rate", 0.4}, {"key", std::int64_t{11}}};
  const std::vector<float> all = dropped({12, 3, 5}, 100, how);
  const std::vector<float> later = dropped({4, 3, 5}, 105, how);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), all.begin() + 5 * 15));
  graph::Attributes part = how;
  part.set("first", std::int64_t{7});
  const std::vector<float> rest = dropped({5, 3, 5}, 100, part);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), all.begin() + 7 * 15));
  EXPECT_NE(dropped({12, 3, 5}, 101, how), all);
  EXPECT_NE(dropped({12, 3, 5}, 100, {{"rate", 0.4}, {"key", std::int64_t{12}}}), all);
}

/// Rows of which each sample has several are others in the next batch.
TEST_F(Dropout, CountsAllRowsOfASample) {
  const graph::Attributes how{{"rate", 0.5}, {"rows", std::int64_t{6}}};
  const std::vector<float> two = dropped({12, 7}, 40, how);
  const std::vector<float> next = dropped({6, 7}, 41, how);
  EXPECT_TRUE(std::equal(next.begin(), next.end(), two.begin() + 6 * 7));
}

TEST_F(Dropout, LeavesOutAllOrNothing) {
  EXPECT_EQ(dropped({9, 9}, 3, {{"rate", 1.0}}), std::vector<float>(81, 0));
  EXPECT_EQ(dropped({9, 9}, 3, {{"rate", 0.0}}), std::vector<float>(81, 1));
}

TEST_F(Dropout, RefusesWhatDoesNotMatch) {
  const auto x = h.random("x", {4, 3}), codes = h.declare("codes", DType::int32, {4, 3}),
             two = h.declare("two", DType::int64, {2});
  expect_error(
      [&] {
        h.builder().add("dropout", {x}, {{"rate", -0.5}});
      },
      "dropout: rate=-0.5; expected a number from 0 to 1");
  expect_error([&] { h.builder().add("dropout", {codes}); },
               "dropout: operand 'x' (codes) of type int32; expected float32 or float64");
  expect_error(
      [&] {
        h.builder().add("dropout_in_training", {x, two});
      },
      "dropout_in_training: operand 'position' (two) of shape [2]; expected [1], of one "
      "number");
  expect_error(
      [&] {
        h.builder().add("dropout_in_training", {x, position(0)}, {{"rows", std::int64_t{0}}});
      },
      "dropout_in_training: rows=0; expected 1 or more");
}

}  // namespace
}  // namespace arenite::codelets::testing
