// Every backward kernel against the reference, which central differences check in turn.
#include "codelets/conv2d_relu_max_pool2d/reference.hpp"

namespace arenite::codelets::testing::fused {
namespace {

/// Codes at random: a third or more dead, whatever their other bits, or all of a kind.
Codes random_codes(const Case& t, OpHarness& harness) {
  Codes code(static_cast<std::size_t>(t.y().elements()));
  const auto style = harness.engine()() % 8;
  for (auto& c : code) {
    const auto tap =
        static_cast<std::uint8_t>(harness.engine()() % static_cast<std::uint64_t>(t.qh * t.qw));
    const auto none = static_cast<std::uint8_t>(dead | (style % 2 == 0 ? 0 : tap));
    c = style == 0 || harness.engine()() % 3 == 0 ? none : tap;
    if (style == 1) c = 0;
  }
  return code;
}

/// Σ |gradient| of channel k's living outputs.
double magnitude(const std::vector<float>& gradient, const Codes& codes, std::size_t k,
                 std::size_t channels) {
  double sum = 0;
  for (std::size_t o = k; o < codes.size(); o += channels) {
    if (!(codes[o] & dead)) sum += std::fabs(double{gradient[o]});
  }
  return sum;
}

/// By itself, or with the gradient of a ReLU before it, whose output's halo is another one.
void check_input_gradients(bool behind_relu) {
  unsigned seed = 0;
  Runs runs;
  const std::vector<Case> all = cases();
  for (const Case& t : all) {
    OpHarness harness(++seed);
    const ValueId g = harness.random("g", t.y(), -1, 1, t.y_halo),
                  code = harness.declare("code", DType::uint8, t.y(), t.code_halo),
                  w = harness.random("w", t.weight());
    const Codes codes = random_codes(t, harness);
    harness.write(code, codes);
    std::vector<ValueId> operands{g, code, w};
    if (behind_relu) operands.push_back(harness.rectified("output", t.x(), t.code_halo));
    const ValueId dx = harness
                           .op(behind_relu ? "conv2d_relu_max_pool2d_grad_input_relu"
                                           : "conv2d_relu_max_pool2d_grad_input",
                               operands, t.attributes("size", List{t.h, t.w}))
                           .front();
    ASSERT_EQ(harness.graph()[dx].shape, t.x());
    harness.set_halo(dx, t.x_halo);
    const std::vector<float> x(static_cast<std::size_t>(t.x().elements()));
    Gradients expected = backward(t, x, harness.read<float>(w), harness.read<float>(g), codes);
    if (behind_relu) zero_where_dead(harness.read<float>(operands[3]), expected.x);
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + t.text());
      ASSERT_EQ(harness.run(name), runtime::StatusWord::ok);
      ++runs[name];
      expect_close(harness.read<float>(dx), expected.x, 1e-5);
      EXPECT_TRUE(harness.halo_is_zero(dx));
    }
  }
  expect_runs(runs, {"sparse"}, all.size());
}

TEST(Conv2dReluMaxPool2d, InputGradientAgreesWithReference) { check_input_gradients(false); }
TEST(Conv2dReluMaxPool2d, InputGradientBehindAReluAgreesWithReference) {
  check_input_gradients(true);
}

TEST(Conv2dReluMaxPool2d, WeightGradientAgreesWithReference) {
  unsigned seed = 0;
  Runs runs;
  const std::vector<Case> all = cases();
  for (const Case& t : all) {
    OpHarness harness(++seed);
    const ValueId x = harness.random("x", t.x(), -1, 1, t.x_halo),
                  g = harness.random("g", t.y(), -1, 1, t.y_halo),
                  code = harness.declare("code", DType::uint8, t.y(), t.code_halo);
    const Codes codes = random_codes(t, harness);
    harness.write(code, codes);
    const auto results = harness.op("conv2d_relu_max_pool2d_grad_weight", {x, g, code},
                                    t.attributes("kernel", List{t.kh, t.kw}));
    ASSERT_EQ(harness.graph()[results[0]].shape, t.weight());
    const std::vector<float> weight(static_cast<std::size_t>(t.weight().elements()));
    const auto gradient = harness.read<float>(g);
    const Gradients expected = backward(t, harness.read<float>(x), weight, gradient, codes);
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + t.text());
      ASSERT_EQ(harness.run(name), runtime::StatusWord::ok);
      ++runs[name];
      expect_close(harness.read<float>(results[0]), expected.weight, 1e-5);
      // Sums of either sign may cancel: their rounding goes by what was added.
      const auto db = harness.read<float>(results[1]);
      for (std::size_t k = 0; k < db.size(); ++k) {
        EXPECT_NEAR(db[k], expected.bias[k], 1e-6 * magnitude(gradient, codes, k, db.size())) << k;
      }
    }
  }
  expect_runs(runs, {"sparse", "sparse_patch"}, all.size());
}

/// All gradients of Σ y·r, for random r, against central differences of the reference. Winners must
/// not change within a step; an entry for which they do is near a kink and left out.
TEST(Conv2dReluMaxPool2d, ReferenceGradientsAgreeWithCentralDifferences) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  const Case padded{.n = 2, .h = 6, .w = 5, .c = 2, .k = 3, .kh = 3, .kw = 2, .ph = 1};
  Case strided{.n = 1, .h = 9, .w = 12, .c = 1, .k = 2, .kh = 3, .kw = 3};
  strided.sh = 2, strided.pw = 2, strided.dh = 2, strided.qh = 1, strided.qw = 3;
  for (const Case& t : {padded, strided}) {
    const auto fill = [&](const Shape& shape) {
      Values values(static_cast<std::size_t>(shape.elements()));
      for (double& v : values) v = uniform(random);
      return values;
    };
    Values x = fill(t.x()), weight = fill(t.weight()), bias = fill({t.k});
    for (double& b : bias) b -= 1;  // some windows are dead
    const Values r = fill(t.y());
    const Codes codes = forward(t, x, weight, bias).code;
    EXPECT_NE(std::count(codes.begin(), codes.end(), dead), 0) << "no dead window to look at";
    const Gradients expected = backward(t, x, weight, r, codes);
    std::size_t kinks = 0, entries = 0;
    const auto check = [&](Values& values, const Values& gradient, const std::string& what) {
      for (std::size_t i = 0; i < values.size(); ++i, ++entries) {
        const double kept = values[i], step = 1e-6;
        double sum[2] = {0, 0};
        bool kink = false;
        for (int side = 0; side < 2; ++side) {
          values[i] = kept + (side == 0 ? step : -step);
          const Pooled moved = forward(t, x, weight, bias);
          kink = kink || moved.code != codes;
          for (std::size_t o = 0; o < r.size(); ++o) sum[side] += moved.y[o] * r[o];
        }
        values[i] = kept;
        if (kink) {
          ++kinks;
        } else {
          EXPECT_NEAR((sum[0] - sum[1]) / (2 * step), gradient[i], 1e-7) << what << i;
        }
      }
    };
    check(x, expected.x, "x");
    check(weight, expected.weight, "weight");
    check(bias, expected.bias, "bias");
    EXPECT_LE(kinks * 20, entries);
  }
}

}  // namespace
}  // namespace arenite::codelets::testing::fused
