// Every kernel of the fused convolution against plain loops in double, which central differences
// check in turn.
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using graph::ValueId;
using Values = std::vector<double>;
using Codes = std::vector<std::uint8_t>;
using List = std::vector<std::int64_t>;

constexpr std::uint8_t dead = 0x80;

struct Case {
  std::int64_t n, h, w, c, k, kh, kw;
  std::int64_t sh = 1, sw = 1, ph = 0, pw = 0, dh = 1, dw = 1;
  std::int64_t qh = 2, qw = 2;  ///< the pooling window
  int x_halo = 0, y_halo = 0, code_halo = 0;
  bool bias = true;

  std::int64_t conv_h() const { return (h + 2 * ph - (kh - 1) * dh - 1) / sh + 1; }
  std::int64_t conv_w() const { return (w + 2 * pw - (kw - 1) * dw - 1) / sw + 1; }
  std::int64_t oh() const { return conv_h() / qh; }
  std::int64_t ow() const { return conv_w() / qw; }
  bool valid() const {
    return h + 2 * ph > (kh - 1) * dh && w + 2 * pw > (kw - 1) * dw && oh() > 0 && ow() > 0;
  }
  Shape x() const { return {n, h, w, c}; }
  Shape weight() const { return {kh, kw, c, k}; }
  Shape y() const { return {n, oh(), ow(), k}; }

  graph::Attributes attributes(const char* extra = nullptr, List value = {}) const {
    graph::Attributes all{{"stride", List{sh, sw}},
                          {"padding", List{ph, pw}},
                          {"dilation", List{dh, dw}},
                          {"pool", List{qh, qw}}};
    if (extra) all.set(extra, std::move(value));
    return all;
  }
  std::string text() const {
    std::string all = to_string(x()) + " * " + to_string(weight());
    const graph::Attributes listed = attributes();
    for (const auto& [name, value] : listed.items()) {
      all += " " + name + "=" + graph::to_string(value);
    }
    return all + " halos " + std::to_string(x_halo) + "," + std::to_string(y_halo) + "," +
           std::to_string(code_halo);
  }

  /// Calls f(index in x, index in weight) for every product of tap `tap` of pooled output `o`.
  template <class F>
  void each_product(std::size_t o, std::int64_t tap, F f) const {
    const auto at = static_cast<std::int64_t>(o);
    const std::int64_t q = at % k, ox = at / k % ow(), oy = at / (k * ow()) % oh(),
                       i = at / (k * ow() * oh());
    const std::int64_t cy = oy * qh + tap / qw, cx = ox * qw + tap % qw;
    for (std::int64_t a = 0; a < kh; ++a) {
      for (std::int64_t b = 0; b < kw; ++b) {
        const std::int64_t iy = cy * sh - ph + a * dh, ix = cx * sw - pw + b * dw;
        if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
        for (std::int64_t p = 0; p < c; ++p) {
          f(static_cast<std::size_t>(((i * h + iy) * w + ix) * c + p),
            static_cast<std::size_t>(((a * kw + b) * c + p) * k + q));
        }
      }
    }
  }
};

/// The convolution's output at tap `tap` of pooled output o.
template <class T>
double convolved(const Case& t, std::size_t o, std::int64_t tap, const std::vector<T>& x,
                 const std::vector<T>& weight, const std::vector<T>& bias) {
  double sum = bias.empty() ? 0.0 : double{bias[o % bias.size()]};
  t.each_product(o, tap, [&](auto xi, auto wi) { sum += double{x[xi]} * double{weight[wi]}; });
  return sum;
}

struct Pooled {
  Values y;
  Codes code;
};

template <class T>
Pooled forward(const Case& t, const std::vector<T>& x, const std::vector<T>& weight,
               const std::vector<T>& bias) {
  Pooled out;
  for (std::size_t o = 0; o < static_cast<std::size_t>(t.y().elements()); ++o) {
    double best = -std::numeric_limits<double>::infinity();
    std::int64_t winner = 0;
    for (std::int64_t tap = 0; tap < t.qh * t.qw; ++tap) {
      const double value = convolved(t, o, tap, x, weight, bias);
      if (value > best) best = value, winner = tap;
    }
    out.y.push_back(std::max(best, 0.0));
    out.code.push_back(best > 0 ? static_cast<std::uint8_t>(winner) : dead);
  }
  return out;
}

struct Gradients {
  Values x, weight, bias;
};

template <class T>
Gradients backward(const Case& t, const std::vector<T>& x, const std::vector<T>& weight,
                   const std::vector<T>& gradient, const Codes& code) {
  Gradients all{Values(static_cast<std::size_t>(t.x().elements())),
                Values(static_cast<std::size_t>(t.weight().elements())),
                Values(static_cast<std::size_t>(t.k))};
  for (std::size_t o = 0; o < code.size(); ++o) {
    if (code[o] == dead) continue;
    all.bias[o % all.bias.size()] += double{gradient[o]};
    t.each_product(o, code[o], [&](auto xi, auto wi) {
      all.x[xi] += double{gradient[o]} * double{weight[wi]};
      all.weight[wi] += double{gradient[o]} * double{x[xi]};
    });
  }
  return all;
}

/// Shapes that networks use, then odd ones at random.
std::vector<Case> cases() {
  std::vector<Case> all{
      {.n = 3, .h = 28, .w = 28, .c = 1, .k = 4, .kh = 3, .kw = 3},
      {.n = 2, .h = 28, .w = 28, .c = 1, .k = 6, .kh = 5, .kw = 5, .ph = 2, .pw = 2, .x_halo = 2},
      {.n = 2, .h = 14, .w = 14, .c = 6, .k = 16, .kh = 5, .kw = 5},
      {.n = 2, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 3, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .y_halo = 1},
      {.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      {.n = 1, .h = 8, .w = 8, .c = 64, .k = 128, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 1, .h = 32, .w = 32, .c = 3, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1, .x_halo = 1},
      {.n = 2, .h = 12, .w = 20, .c = 16, .k = 32, .kh = 5, .kw = 5, .ph = 2, .pw = 2},
      {.n = 1, .h = 11, .w = 64, .c = 1, .k = 5, .kh = 3, .kw = 3, .pw = 1, .qh = 3, .qw = 3},
      {.n = 1,
       .h = 9,
       .w = 9,
       .c = 4,
       .k = 40,
       .kh = 3,
       .kw = 3,
       .ph = 1,
       .pw = 1,
       .qh = 3,
       .qw = 3},
      {.n = 1, .h = 20, .w = 20, .c = 2, .k = 3, .kh = 16, .kw = 16},
      {.n = 1, .h = 22, .w = 22, .c = 1, .k = 2, .kh = 17, .kw = 17},
      {.n = 2, .h = 12, .w = 12, .c = 1, .k = 2, .kh = 1, .kw = 1, .qh = 11, .qw = 11},
  };
  // Blocks of channels, vectors, rows and lists that do not come out even: every path of the sparse
  // kernels.
  for (const std::int64_t c : {1, 2, 3, 6, 16, 20, 32, 33, 48, 64, 100, 128}) {
    for (const std::int64_t k : {1, 6, 16, 33, 64, 128}) {
      const bool even = (c + k) % 2 == 0;
      Case t{.n = 2, .h = 7, .w = 6, .c = c, .k = k, .kh = 3, .kw = 3, .ph = 1, .pw = 1};
      t.x_halo = even ? 1 : 0;
      t.y_halo = even ? 0 : 1;
      t.code_halo = even ? 1 : 0;
      all.push_back(t);
      if (c * k > 2048) continue;
      t.kh = even ? 5 : 2;
      t.kw = even ? 5 : 7;
      t.ph = t.pw = even ? 2 : 1;
      all.push_back(t);
      t.dh = t.dw = 2;
      t.ph = t.pw = 6;
      t.qh = even ? 1 : 4;
      t.qw = even ? 2 : 4;
      all.push_back(t);
    }
  }
  all.push_back({.n = 70, .h = 4, .w = 4, .c = 8, .k = 20, .kh = 3, .kw = 3});
  all.push_back({.n = 2, .h = 50, .w = 44, .c = 2, .k = 3, .kh = 7, .kw = 6, .pw = 1});
  all.push_back({.n = 1, .h = 8, .w = 200, .c = 40, .k = 5, .kh = 3, .kw = 3, .ph = 1, .pw = 1});
  all.push_back({.n = 1, .h = 20, .w = 5, .c = 5, .k = 4, .kh = 13, .kw = 1, .sh = 2});
  std::mt19937 random(7);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  const std::size_t total = all.size() + 185;
  while (all.size() < total) {
    Case t{.n = pick({1, 2, 3}),
           .h = pick({2, 3, 5, 7, 8, 11, 12}),
           .w = pick({2, 4, 6, 7, 9, 12, 20}),
           .c = pick({1, 1, 2, 3, 4, 6, 16, 20, 32, 48}),
           .k = pick({1, 3, 4, 6, 8, 16, 17, 20, 32, 64}),
           .kh = pick({1, 2, 3, 3, 5, 5}),
           .kw = pick({1, 3, 3, 4, 5}),
           .sh = pick({1, 1, 1, 2, 3}),
           .sw = pick({1, 1, 1, 2, 3}),
           .ph = pick({0, 0, 1, 2, 3}),
           .pw = pick({0, 0, 1, 2}),
           .dh = pick({1, 1, 1, 2}),
           .dw = pick({1, 1, 1, 3}),
           .qh = pick({1, 2, 2, 2, 3}),
           .qw = pick({1, 2, 2, 2, 3}),
           .x_halo = static_cast<int>(pick({0, 1, 2, 3})),
           .y_halo = static_cast<int>(pick({0, 0, 1, 2})),
           .code_halo = static_cast<int>(pick({0, 0, 1})),
           .bias = pick({0, 1, 1}) == 1};
    if (random() % 2 == 0) {  // what fast kernels are made for
      t.sh = t.sw = t.dh = t.dw = 1;
      t.kh = t.kw = pick({3, 5});
      t.ph = t.pw = pick({0, t.kh / 2});
      t.qh = t.qw = 2;
    }
    if (t.valid()) all.push_back(t);
  }
  return all;
}

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
  for (const Case& t : forward_cases()) {
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

/// The shapes that the fast kernels are made for reach them, in builds that have them.
TEST(Conv2dReluMaxPool2d, FastKernelsComeFirst) {
  const auto first = [](const Case& t) {
    OpHarness harness;
    harness.op("conv2d_relu_max_pool2d",
               {harness.random("x", t.x()), harness.random("w", t.weight())}, t.attributes());
    return harness.cpu_kernels().front();
  };
  if (first({.n = 2, .h = 28, .w = 28, .c = 1, .k = 4, .kh = 3, .kw = 3}) != "direct") {
    GTEST_SKIP() << "a build without AVX-512";
  }
  for (const Case& t :
       {Case{.n = 2, .h = 28, .w = 28, .c = 1, .k = 6, .kh = 5, .kw = 5, .ph = 2, .pw = 2},
        Case{.n = 2, .h = 14, .w = 14, .c = 6, .k = 16, .kh = 5, .kw = 5},
        Case{.n = 2, .h = 28, .w = 28, .c = 1, .k = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
        Case{.n = 2, .h = 32, .w = 32, .c = 3, .k = 64, .kh = 7, .kw = 7, .sh = 2, .sw = 2}}) {
    EXPECT_EQ(first(t), "direct") << t.text();
  }
  for (const Case& t :
       {Case{.n = 2, .h = 14, .w = 14, .c = 32, .k = 64, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
        Case{.n = 1, .h = 16, .w = 16, .c = 128, .k = 128, .kh = 3, .kw = 3, .ph = 1, .pw = 1}}) {
    EXPECT_EQ(first(t), "winograd") << t.text();
  }
}

/// Codes at random: a quarter or more dead, or all of a kind.
Codes random_codes(const Case& t, OpHarness& harness) {
  Codes code(static_cast<std::size_t>(t.y().elements()));
  const auto style = harness.engine()() % 8;
  for (auto& c : code) {
    const auto tap =
        static_cast<std::uint8_t>(harness.engine()() % static_cast<std::uint64_t>(t.qh * t.qw));
    c = style == 0 || harness.engine()() % 3 == 0 ? dead : tap;
    if (style == 1) c = 0;
  }
  return code;
}

TEST(Conv2dReluMaxPool2d, InputGradientAgreesWithReference) {
  unsigned seed = 0;
  for (const Case& t : cases()) {
    OpHarness harness(++seed);
    const ValueId g = harness.random("g", t.y(), -1, 1, t.y_halo),
                  code = harness.declare("code", DType::uint8, t.y(), t.code_halo),
                  w = harness.random("w", t.weight());
    const Codes codes = random_codes(t, harness);
    harness.write(code, codes);
    const ValueId dx = harness
                           .op("conv2d_relu_max_pool2d_grad_input", {g, code, w},
                               t.attributes("size", List{t.h, t.w}))
                           .front();
    ASSERT_EQ(harness.graph()[dx].shape, t.x());
    harness.set_halo(dx, t.x_halo);
    const std::vector<float> x(static_cast<std::size_t>(t.x().elements()));
    const Gradients expected =
        backward(t, x, harness.read<float>(w), harness.read<float>(g), codes);
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + t.text());
      ASSERT_EQ(harness.run(name), runtime::StatusWord::ok);
      expect_close(harness.read<float>(dx), expected.x, 1e-5);
      EXPECT_TRUE(harness.halo_is_zero(dx));
    }
  }
}

TEST(Conv2dReluMaxPool2d, WeightGradientAgreesWithReference) {
  unsigned seed = 0;
  for (const Case& t : cases()) {
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
    const Gradients expected =
        backward(t, harness.read<float>(x), weight, harness.read<float>(g), codes);
    for (const std::string& name : harness.cpu_kernels()) {
      SCOPED_TRACE(name + " " + t.text());
      ASSERT_EQ(harness.run(name), runtime::StatusWord::ok);
      expect_close(harness.read<float>(results[0]), expected.weight, 1e-5);
      expect_close(harness.read<float>(results[1]), expected.bias, 1e-5);
    }
  }
}

/// All gradients of Σ y·r, for random r, against central differences of the reference. Winners must
/// not change within a step; an entry for which they do is near a kink and left out.
TEST(Conv2dReluMaxPool2d, ReferenceGradientsAgreeWithCentralDifferences) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Case& t :
       {Case{.n = 2, .h = 6, .w = 5, .c = 2, .k = 3, .kh = 3, .kw = 2, .ph = 1}, Case{.n = 1,
                                                                                 .h = 9,
                                                                                 .w = 12,
                                                                                 .c = 1,
                                                                                 .k = 2,
                                                                                 .kh = 3,
                                                                                 .kw = 3,
                                                                                 .sh = 2,
                                                                                 .pw = 2,
                                                                                 .dh = 2,
                                                                                 .qh = 1,
                                                                                 .qw = 3}}) {
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

TEST(Conv2dReluMaxPool2d, GradientRuleAppendsWhatIsWanted) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 6, 6, 3}), w = harness.random("w", {3, 3, 3, 4}),
                b = harness.random("b", {4});
  const ValueId y = harness.op("conv2d_relu_max_pool2d", {x, w, b}).front();
  const graph::OpId op = harness.graph()[y].producer;
  const ValueId g = harness.random("g", harness.graph()[y].shape);
  const auto rule = harness.graph()[op].definition->gradient;
  const std::size_t before = harness.graph().op_count();
  {
    graph::GradientContext first_layer(harness.builder(), op, {g, {}}, {false, true, true});
    rule(first_layer);
    EXPECT_FALSE(first_layer.operand_gradient(0));
    EXPECT_EQ(harness.graph()[first_layer.operand_gradient(1)].shape, (Shape{3, 3, 3, 4}));
    EXPECT_EQ(harness.graph()[first_layer.operand_gradient(2)].shape, Shape{4});
    EXPECT_EQ(harness.graph().op_count(), before + 1);
  }
  graph::GradientContext input(harness.builder(), op, {g, {}}, {true, false, false});
  rule(input);
  EXPECT_EQ(harness.graph()[input.operand_gradient(0)].shape, (Shape{2, 6, 6, 3}));
  EXPECT_EQ(harness.graph().op_count(), before + 2);
  graph::GradientContext unused(harness.builder(), op, {ValueId{}, {}}, {true, true, true});
  rule(unused);
  EXPECT_EQ(harness.graph().op_count(), before + 2);
}

TEST(Conv2dReluMaxPool2d, ShapeRuleErrors) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 4, 4, 3}), w = harness.random("w", {3, 3, 3, 8}),
                g = harness.random("g", {2, 1, 2, 8}),
                code = harness.declare("code", DType::uint8, {2, 1, 2, 8});
  const std::string name = "conv2d_relu_max_pool2d";
  expect_error(
      [&] {
        harness.op(name, {x, w}, {{"pool", List{3, 1}}});
      },
      name +
          ": pooling windows of 3x1 over a convolution's output of 2x2; expected "
          "windows that fit");
  expect_error(
      [&] {
        harness.op(name, {x, w}, {{"pool", List{64, 2}}});
      },
      name +
          ": pooling windows of 64x2; expected at most 127 taps (hint: pool in two "
          "steps)");
  expect_error(
      [&] {
        harness.op(name, {x, w}, {{"pool", List{0, 2}}});
      },
      name +
          ": pool=[0, 2]; expected two integers (rows, columns) of at least 1 and "
          "below 2^31");
  expect_error(
      [&] {
        harness.op(name, {x, x});
      },
      name +
          ": operand 'weight' (x) of shape [2, 4, 4, 3] for an input of 3 channels; "
          "expected [KH, KW, 3, K]");
  expect_error(
      [&] {
        harness.op(name + "_grad_input", {g, code, w}, {{"size", List{4, 4}}});
      },
      name +
          "_grad_input: operand 'gradient' (g) of shape [2, 1, 2, 8]; expected [2, 1, 1, 8], as "
          "the pooled output has");
  expect_error(
      [&] {
        harness.op(name + "_grad_weight", {x, g, g}, {{"kernel", List{3, 1}}});
      },
      name + "_grad_weight: operand 'code' (g) of type float32; expected uint8");
}

}  // namespace
}  // namespace arenite::codelets::testing
