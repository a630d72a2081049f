// What it refuses; its numbers, gradients and kernels are compared with others in tests/reference.
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

TEST(NormalizeChannels, RefusesWhatIsNotOfItsChannels) {
  OpHarness h;
  const auto x = h.random("x", {4, 3}), c = h.random("c", {3}), wide = h.random("wide", {4}),
             number = h.random("number", {}), exact = h.declare("exact", DType::float64, {3});
  expect_error(
      [&] {
        h.builder().add("normalize_channels", {number, c, c, c});
      },
      "normalize_channels: operand 'x' (number) of shape []; expected rank 2 or more, [N, ..., C]");
  expect_error(
      [&] {
        h.builder().add("normalize_channels", {x, c, c, wide});
      },
      "normalize_channels: operand 'factor' (wide) of shape [4]; expected [3], the channels of "
      "'x'");
  expect_error(
      [&] {
        h.builder().add("normalize_channels", {x, c, exact, c});
      },
      "normalize_channels: operand 'rest' (exact) of type float64; expected float32");
}

/// Large numbers keep the digits in which they differ.
TEST(NormalizeChannels, TakesWhatAMeanIsMoreThanItsType) {
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {2, 1});
  std::vector<graph::ValueId> operands{x};
  for (const char* name : {"mean", "rest", "factor"})
    operands.push_back(h.declare(name, DType::float32, {1}));
  const auto y = h.op("normalize_channels", operands).front();
  h.write<float>(x, {16777216.0f, 16777218.0f});
  const float others[]{16777216.0f, 0.75f, 4.0f};
  for (std::size_t i = 0; i < 3; ++i) h.write<float>(operands[i + 1], {others[i]});
  ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
  EXPECT_EQ(h.read<float>(y), (std::vector<float>{-3.0f, 5.0f}));
}

}  // namespace
}  // namespace arenite::codelets::testing
