// What GPU libraries leave to do, its grids run as loops, against the plain kernels.
#include "codelets/conv2d_relu_max_pool2d/spread.hpp"
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using conv2d_relu_max_pool2d::Geometry;
using List = std::vector<std::int64_t>;

/// A convolution's output is its input where the only tap multiplies it by 1: what is pooled then
/// is what the test says.
struct Identity {
  std::int64_t n, h, w;
  Pair pool;
  std::int64_t channels = 3;
  OpHarness harness{11};
  ValueId x, weight, bias;

  Identity(std::int64_t samples, std::int64_t rows, std::int64_t columns, Pair windows, bool biased)
      : n(samples), h(rows), w(columns), pool(windows) {
    const Shape shape{n, h, w, channels};
    x = harness.declare("x", DType::float32, shape);
    // Of few numbers, so that some are equal, and mostly not above 0 for a window that is dead.
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(static_cast<float>(static_cast<int>(harness.engine()() % 6) - 3));
    if (biased) values.at(values.size() / 2) = std::numeric_limits<float>::quiet_NaN();
    harness.write(x, values);
    weight = harness.declare("weight", DType::float32, {1, 1, channels, channels});
    std::vector<float> one(static_cast<std::size_t>(channels * channels), 0);
    for (std::int64_t c = 0; c < channels; ++c)
      one.at(static_cast<std::size_t>(c * channels + c)) = 1;
    harness.write(weight, one);
    if (biased) bias = harness.random("bias", {channels});
  }
  graph::Attributes attributes() const { return {{"pool", List{pool.h, pool.w}}}; }
  Geometry geometry() {
    return Geometry::forward(
        OpView(harness.graph(), harness.graph()[harness.graph()[graph::Graph::body].ops.back()]));
  }
};

/// Equal, and NaN where NaN is.
void expect_same(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(actual[i] == expected[i] || (actual[i] != actual[i] && expected[i] != expected[i]))
        << i << ": " << actual[i] << ", expected " << expected[i];
}

constexpr std::tuple<std::int64_t, std::int64_t, Pair> sizes[] = {
    {4, 4, {2, 2}}, {5, 7, {2, 2}}, {6, 7, {3, 2}}, {3, 3, {1, 1}}, {7, 5, {2, 4}}};

TEST(SpreadGradient, PoolsAsThePlainKernelDoes) {
  for (const bool biased : {false, true}) {
    for (const auto& [h, w, pool] : sizes) {
      Identity one(2, h, w, pool, biased);
      OpHarness& harness = one.harness;
      std::vector<ValueId> operands{one.x, one.weight};
      if (biased) operands.push_back(one.bias);
      const auto results = harness.op("conv2d_relu_max_pool2d", operands, one.attributes());
      const Geometry g = one.geometry();
      ASSERT_EQ(harness.run("plain"), runtime::StatusWord::ok);
      const auto expected = harness.read<float>(results[0]);
      std::vector<float> output(expected.size(), -1);
      std::vector<std::uint8_t> code(expected.size(), 0xee);
      std::vector<float> convolved = harness.read<float>(one.x), of_bias;
      if (biased) {
        of_bias = harness.read<float>(one.bias);
        // The plain convolution multiplies a NaN by the 0 of other channels too.
        for (std::size_t i = 0; i < convolved.size(); i += 3) {
          for (std::size_t c = 0; c < 3; ++c) {
            const float sum = convolved[i] + convolved[i + 1] + convolved[i + 2];
            if (sum != sum) convolved[i + c] = sum;
          }
        }
      }
      pool_convolved(KernelCall(), g, {h, w}, convolved.data(), biased ? of_bias.data() : nullptr,
                     output.data(), code.data());
      expect_same(output, expected);
      EXPECT_EQ(code, harness.read<std::uint8_t>(results[1]));
    }
  }
}

// Through the convolution that changes nothing, the input's gradient is the spread one.
TEST(SpreadGradient, SpreadsAsThePlainKernelDoes) {
  for (const auto& [h, w, pool] : sizes) {
    Identity one(2, h, w, pool, false);
    OpHarness& harness = one.harness;
    const auto results =
        harness.op("conv2d_relu_max_pool2d", {one.x, one.weight}, one.attributes());
    const Geometry g = one.geometry();
    ASSERT_EQ(harness.run("plain"), runtime::StatusWord::ok);
    const auto gradient = harness.random("gradient", harness.graph()[results[0]].shape);
    graph::Attributes attributes = one.attributes();
    attributes.set("size", List{h, w});
    const auto dx = harness.op("conv2d_relu_max_pool2d_grad_input",
                               {gradient, results[1], one.weight}, attributes);
    ASSERT_EQ(harness.run("plain"), runtime::StatusWord::ok);
    std::vector<float> spread(static_cast<std::size_t>(2 * h * w * one.channels), -1);
    const auto given = harness.read<float>(gradient);
    const auto code = harness.read<std::uint8_t>(results[1]);
    spread_gradient(KernelCall(), g, {h, w}, given.data(), code.data(), spread.data());
    EXPECT_EQ(spread, harness.read<float>(dx[0]));
  }
}

}  // namespace
}  // namespace arenite::codelets::testing
