// Every forward kernel against the reference.
#include "codelets/conv2d_relu_max_pool2d/reference.hpp"

namespace arenite::codelets::testing::fused {
namespace {

/// Shapes with which the direct and the Winograd kernel take every turn: full and partial vectors
/// and panels of channels, tiles of all widths, one and several vectors of columns, halos or
/// copies.
std::vector<Case> forward_cases() {
  std::vector<Case> all = cases();
  std::mt19937 random(11);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  const auto halos = [&](Case t) {
    t.x_halo = static_cast<int>(pick({0, 1, 2, 3}));
    t.y_halo = static_cast<int>(pick({0, 1, 2}));
    t.code_halo = static_cast<int>(pick({0, 1}));
    t.bias = pick({0, 1, 1}) == 1;
    return t;
  };
  for (const std::int64_t k : {1, 4, 6, 7, 13, 15, 16, 17, 32, 33, 64}) {
    for (const std::int64_t kernel : {1, 3, 5, 7}) {
      for (const std::int64_t padding : {0, 1, 2}) {
        all.push_back(halos({.n = 2,
                             .h = pick({10, 11, 16}),
                             .w = pick({24, 28, 31, 66, 73}),
                             .c = kernel == 7 ? pick({1, 2, 3}) : pick({1, 2, 3, 4, 5, 6}),
                             .k = k,
                             .kh = kernel,
                             .kw = kernel,
                             .sh = pick({1, 1, 2}),
                             .sw = pick({1, 1, 1, 2, 3}),
                             .ph = padding,
                             .pw = padding,
                             .dw = pick({1, 1, 1, 2})}));
      }
    }
    for (const std::int64_t channels : {7, 16, 33}) {
      all.push_back(halos({.n = 3,
                           .h = pick({8, 9, 14}),
                           .w = pick({8, 11, 14}),
                           .c = channels,
                           .k = k,
                           .kh = 3,
                           .kw = 3,
                           .ph = pick({0, 1, 2}),
                           .pw = pick({0, 1, 2})}));
    }
  }
  for (std::int64_t w = 2; w <= 18; ++w) {  // tiles of 1 to 7 windows, and two tiles
    all.push_back(halos({.n = 1, .h = 2, .w = w, .c = 3, .k = 16, .kh = 1, .kw = 1}));
    all.push_back(
        halos({.n = 40, .h = 2, .w = w, .c = 16, .k = 16, .kh = 3, .kw = 3, .ph = 1, .pw = 1}));
  }
  // A long sum.
  all.push_back({.n = 1, .h = 12, .w = 12, .c = 256, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1});
  return all;
}

TEST(Conv2dReluMaxPool2d, ForwardAgreesWithReference) {
  Runs runs;
  const std::vector<Case> all = forward_cases();
  for (const Case& t : all) {
    OpHarness harness;
    std::vector<ValueId> operands{harness.random("x", t.x(), -1, 1, t.x_halo),
                                  harness.random("w", t.weight())};
    if (t.bias) operands.push_back(harness.random("b", {t.k}));
    const auto results = harness.op("conv2d_relu_max_pool2d", operands, t.attributes());
    ASSERT_EQ(harness.graph()[results[0]].shape, t.y());
    harness.set_halo(results[0], t.y_halo);
    harness.set_halo(results[1], t.code_halo);
    const auto x = harness.read<float>(operands[0]), weight = harness.read<float>(operands[1]);
    const auto bias = t.bias ? harness.read<float>(operands[2]) : std::vector<float>{};
    const Pooled expected = forward(t, x, weight, bias);
    const double largest = *std::max_element(expected.y.begin(), expected.y.end());
    ASSERT_EQ(harness.cpu_kernels().back(), "plain");
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + t.text());
      ASSERT_EQ(harness.run(name), runtime::StatusWord::ok);
      ++runs[name];
      expect_close(harness.read<float>(results[0]), expected.y, 1e-5);
      EXPECT_TRUE(harness.halo_is_zero(results[0]));
      EXPECT_TRUE(harness.halo_is_zero<std::uint8_t>(results[1]));
      const auto code = harness.read<std::uint8_t>(results[1]);
      for (std::size_t o = 0; o < code.size(); ++o) {
        if (code[o] == expected.code[o]) continue;
        // Rounding may turn a tie: then both are winners, or the output is next to nothing.
        const double chosen = code[o] == dead ? 0.0 : convolved(t, o, code[o], x, weight, bias);
        ASSERT_TRUE(code[o] == dead || code[o] < t.qh * t.qw) << o;
        ASSERT_NEAR(chosen, expected.y[o], 1e-5 * largest) << o;
      }
    }
  }
  expect_runs(runs, {"direct", "winograd"}, all.size());
}

/// Ties go to the first tap, zeros are dead, NaN wins.
TEST(Conv2dReluMaxPool2d, TiesZerosAndNaN) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t k : {1, 4, 6, 16, 32, 33}) {
    OpHarness harness;
    const ValueId x = harness.declare("x", DType::float32, {1, 2, 10, 1}),
                  w = harness.declare("w", DType::float32, {1, 1, 1, k});
    harness.write(x, std::vector<float>{1, 1, 2, 3, 0,  0, nan, 1, -1, -2,  //
                                        1, 1, 3, 2, -1, 0, 5,   2, -3, -1});
    harness.write(w, std::vector<float>(static_cast<std::size_t>(k), 1.0f));
    const auto results = harness.op("conv2d_relu_max_pool2d", {x, w});
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + std::to_string(k) + " channels");
      harness.run(name);
      const auto y = harness.read<float>(results[0]);
      const auto code = harness.read<std::uint8_t>(results[1]);
      for (std::size_t q = 0; q < static_cast<std::size_t>(k); ++q) {
        const auto stride = static_cast<std::size_t>(k);
        EXPECT_EQ(y[q], 1);
        EXPECT_EQ(code[q], 0);
        EXPECT_EQ(y[stride + q], 3);
        EXPECT_EQ(code[stride + q], 1);
        EXPECT_EQ(y[2 * stride + q], 0);
        EXPECT_EQ(code[2 * stride + q], dead);
        EXPECT_TRUE(std::isnan(y[3 * stride + q]));
        EXPECT_EQ(code[3 * stride + q], 0);
        EXPECT_EQ(y[4 * stride + q], 0);
        EXPECT_EQ(code[4 * stride + q], dead);
      }
    }
  }
}

/// Small whole numbers leave nothing to round, so that all kernels must find the plain one's
/// winners, ties and NaN included.
TEST(Conv2dReluMaxPool2d, WholeNumbersAreExact) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [c, k] :
       {std::pair{1, 1}, {1, 6}, {2, 15}, {1, 32}, {3, 17}, {16, 4}, {33, 64}}) {
    OpHarness harness;
    const ValueId x = harness.random("x", {3, 13, 30, c}, 0, 5),
                  w = harness.random("w", {3, 3, c, k}, 0, 3), b = harness.random("b", {k}, 0, 7);
    const auto round_down = [&](ValueId id, float middle, bool holes) {
      auto values = harness.read<float>(id);
      for (float& v : values) {
        v = std::floor(v) - middle;
        if (holes && harness.engine()() % values.size() < 8) v = nan;
      }
      harness.write(id, values);
    };
    round_down(x, 2, true);
    round_down(w, 1, false);
    round_down(b, 3, false);
    const auto results = harness.op("conv2d_relu_max_pool2d", {x, w, b}, {{"padding", List{1, 1}}});
    harness.run("plain");
    const auto expected = harness.read<float>(results[0]);
    const auto winners = harness.read<std::uint8_t>(results[1]);
    const auto is_nan = [](float v) { return std::isnan(v); };
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), is_nan));
    EXPECT_NE(std::count(winners.begin(), winners.end(), dead), 0);
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + std::to_string(c) + " to " + std::to_string(k) + " channels");
      harness.run(name);
      const auto y = harness.read<float>(results[0]);
      const auto code = harness.read<std::uint8_t>(results[1]);
      for (std::size_t o = 0; o < y.size(); ++o) {
        if (std::isnan(expected[o])) {  // one NaN is as good as another
          ASSERT_TRUE(std::isnan(y[o]) && code[o] < 4) << o;
        } else {
          ASSERT_EQ(y[o], expected[o]) << o;
          ASSERT_EQ(code[o], winners[o]) << o;
        }
      }
    }
  }
}

}  // namespace
}  // namespace arenite::codelets::testing::fused
