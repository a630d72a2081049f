// Shapes, and what is refused; what it computes is in tests/batch_norm_test.cpp.
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

TEST(BatchNorm, HasAnyAxesInFrontOfItsChannels) {
  OpHarness h;
  const auto mean = h.random("mean", {3}), variance = h.random("variance", {3});
  int number = 0;
  for (const Shape& shape : {Shape{4, 3}, Shape{0, 3}, Shape{2, 5, 3}, Shape{2, 4, 5, 3}}) {
    const auto x = h.random("x" + std::to_string(number++), shape);
    const auto results = h.builder().add("batch_norm", {x, mean, variance});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(h.graph()[results[0]].shape, shape);
    EXPECT_EQ(h.graph()[results[1]].shape, Shape{3});
    EXPECT_EQ(h.graph()[results[2]].shape, Shape{3});
  }
}

TEST(BatchNorm, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {4, 3}), row = h.random("row", {3}), mean = h.random("mean", {3}),
             variance = h.random("variance", {3}), wide = h.random("wide", {4}),
             exact = h.declare("exact", DType::float64, {3});
  const auto expect = [&](std::vector<ValueId> operands, const graph::Attributes& attributes,
                          const std::string& words) {
    expect_error([&] { h.builder().add("batch_norm", std::move(operands), attributes); }, words);
  };
  expect({row, mean, variance}, {},
         "batch_norm: operand 'x' (row) of shape [3]; expected rank 2 or more, [N, ..., C]");
  expect({x, wide, variance}, {},
         "batch_norm: operand 'running_mean' (wide) of shape [4]; expected [3], the channels of "
         "'x'");
  expect({x, mean, exact}, {},
         "batch_norm: operand 'running_variance' (exact) of type float64; expected float32");
  expect({x, mean, variance, {}, wide}, {},
         "batch_norm: operand 'bias' (wide) of shape [4]; expected [3], the channels of 'x'");
  expect({x, mean, variance}, {{"momentum", 1.5}},
         "batch_norm: momentum=1.5; expected a number from 0 to 1");
  expect({x, mean, variance}, {{"eps", -1e-5}},
         "batch_norm: eps=-1e-05; expected a number from 0 to 1");
}

}  // namespace
}  // namespace arenite::codelets::testing
