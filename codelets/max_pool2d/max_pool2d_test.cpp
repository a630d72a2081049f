// Every pooling kernel against plain loops in double.
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

using List = std::vector<std::int64_t>;

struct Case {
  std::int64_t n, h, w, c;
  std::int64_t kh = 2, kw = 2, sh = 2, sw = 2, ph = 0, pw = 0;
  int x_halo = 0, y_halo = 0, code_halo = 0;

  std::int64_t oh() const { return (h + 2 * ph - kh) / sh + 1; }
  std::int64_t ow() const { return (w + 2 * pw - kw) / sw + 1; }
  bool valid() const { return h + 2 * ph >= kh && w + 2 * pw >= kw && ph < kh && pw < kw; }
  Shape x() const { return {n, h, w, c}; }
  Shape y() const { return {n, oh(), ow(), c}; }

  graph::Attributes attributes() const {
    return {{"kernel", List{kh, kw}}, {"stride", List{sh, sw}}, {"padding", List{ph, pw}}};
  }
  graph::Attributes grad_attributes() const {
    graph::Attributes all = attributes();
    all.set("size", List{h, w});
    return all;
  }
  std::string text() const {
    return to_string(x()) + " kernel " + std::to_string(kh) + "x" + std::to_string(kw) +
           " stride " + std::to_string(sh) + "x" + std::to_string(sw) + " padding " +
           std::to_string(ph) + "x" + std::to_string(pw) + " halos " + std::to_string(x_halo) +
           "," + std::to_string(y_halo) + "," + std::to_string(code_halo);
  }

  /// Calls f(index in y, tap, index in x) for every tap inside the image, row-major in each window.
  template <class F>
  void each(F f) const {
    for (std::int64_t o = 0; o < y().elements(); ++o) {
      const std::int64_t q = o % c, ox = o / c % ow(), oy = o / (c * ow()) % oh(),
                         i = o / (c * ow() * oh());
      for (std::int64_t tap = 0; tap < kh * kw; ++tap) {
        const std::int64_t iy = oy * sh - ph + tap / kw, ix = ox * sw - pw + tap % kw;
        if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
        f(static_cast<std::size_t>(o), tap,
          static_cast<std::size_t>(((i * h + iy) * w + ix) * c + q));
      }
    }
  }
};

std::vector<Case> cases() {
  std::vector<Case> all{
      {.n = 2, .h = 26, .w = 26, .c = 4},
      {.n = 2, .h = 28, .w = 28, .c = 6},
      {.n = 1, .h = 14, .w = 14, .c = 64, .y_halo = 1},
      {.n = 2, .h = 13, .w = 13, .c = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      {.n = 1, .h = 30, .w = 13, .c = 2, .kh = 127, .kw = 1, .sh = 3, .ph = 100},
  };
  for (std::int64_t c = 1; c <= 18;
       ++c) {  // every packing of windows, odd rows and columns left over
    all.push_back({.n = 2,
                   .h = 5,
                   .w = 2 * c + 3,
                   .c = c,
                   .x_halo = static_cast<int>(c % 3),
                   .y_halo = static_cast<int>(c % 2),
                   .code_halo = static_cast<int>(c % 4)});
    all.push_back({.n = 1, .h = 4, .w = 36, .c = c});
  }
  std::mt19937 random(11);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  while (all.size() < 120) {
    const Case t{.n = pick({1, 2, 3}),
                 .h = pick({1, 2, 5, 6, 9}),
                 .w = pick({1, 3, 4, 7, 10}),
                 .c = pick({1, 3, 4, 16, 20, 33}),
                 .kh = pick({1, 2, 3, 4}),
                 .kw = pick({1, 2, 3, 5}),
                 .sh = pick({1, 2, 3, 5}),
                 .sw = pick({1, 2, 3}),
                 .ph = pick({0, 0, 1, 2}),
                 .pw = pick({0, 0, 1, 3}),
                 .x_halo = static_cast<int>(pick({0, 1, 2, 3})),
                 .y_halo = static_cast<int>(pick({0, 1, 2})),
                 .code_halo = static_cast<int>(pick({0, 0, 1}))};
    if (t.valid()) all.push_back(t);
  }
  return all;
}

/// Same bits, but any NaN equals any other.
void expect_same(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    ASSERT_EQ(actual[i], expected[i]) << what << " at " << i;
  }
}

TEST(MaxPool2d, ForwardAgreesWithReference) {
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  for (const Case& t : cases()) {
    OpHarness harness;
    const ValueId x = harness.random("x", t.x(), -1, 1, t.x_halo);
    // Few distinct values make ties common; the special ones come along now and then.
    std::vector<float> values = harness.read<float>(x);
    for (float& v : values) {
      v = std::floor(v * 3);
      if (harness.engine()() % 16 == 0) v = nan;
      if (harness.engine()() % 4 == 0) v = -inf;
    }
    harness.write(x, values);
    std::vector<float> best(static_cast<std::size_t>(t.y().elements()));
    std::vector<std::uint8_t> codes(best.size(), 255);
    t.each([&](std::size_t o, std::int64_t tap, std::size_t at) {
      if (codes[o] == 255 || values[at] > best[o] || std::isnan(values[at])) {
        best[o] = values[at];
        codes[o] = static_cast<std::uint8_t>(tap);
      }
    });
    const auto results = harness.op("max_pool2d", {x}, t.attributes());
    ASSERT_EQ(harness.graph()[results[0]].shape, t.y());
    harness.set_halo(results[0], t.y_halo);
    harness.set_halo(results[1], t.code_halo);
    const auto names = harness.cpu_kernels();
    ASSERT_EQ(names.back(), "plain");
    for (const std::string& name : names) {
      EXPECT_EQ(harness.run(name), runtime::StatusWord::ok);
      expect_same(harness.read<float>(results[0]), best, name + " " + t.text());
      EXPECT_EQ(harness.read<std::uint8_t>(results[1]), codes) << name << " " << t.text();
      EXPECT_TRUE(harness.halo_is_zero(results[0])) << name << " " << t.text();
    }
  }
}

TEST(MaxPool2d, GradientAgreesWithReference) {
  for (const Case& t : cases()) {
    OpHarness harness;
    const ValueId g = harness.random("g", t.y(), -1, 1, t.y_halo);
    const ValueId code = harness.declare("code", DType::uint8, t.y(), t.code_halo);
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(t.y().elements()), 128);  // dead
    t.each([&](std::size_t o, std::int64_t tap, std::size_t) {
      if (harness.engine()() % 3 == 0) codes[o] = static_cast<std::uint8_t>(tap);
    });
    harness.write(code, codes);
    const auto gradient = harness.read<float>(g);
    std::vector<double> dx(static_cast<std::size_t>(t.x().elements()));
    t.each([&](std::size_t o, std::int64_t tap, std::size_t at) {
      if (codes[o] == tap) dx[at] += gradient[o];
    });
    const ValueId result = harness.op("max_pool2d_grad", {g, code}, t.grad_attributes()).front();
    ASSERT_EQ(harness.graph()[result].shape, t.x());
    harness.set_halo(result, t.x_halo);
    for (const std::string& name : harness.cpu_kernels()) {
      EXPECT_EQ(harness.run(name), runtime::StatusWord::ok);
      expect_close(harness.read<float>(result), dx, 1e-6, name + " " + t.text());
      EXPECT_TRUE(harness.halo_is_zero(result)) << name << " " << t.text();
    }
  }
}

/// Σ y·r, forward and gradient chained, against central differences away from ties.
TEST(MaxPool2d, GradientAgreesWithCentralDifferences) {
  const Case t{.n = 1, .h = 6, .w = 7, .c = 2, .kh = 3, .kw = 2, .sh = 2, .sw = 1, .ph = 1};
  OpHarness harness;
  const ValueId x = harness.declare("x", DType::float32, t.x());
  std::vector<float> values(static_cast<std::size_t>(t.x().elements()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 37 % values.size());
  const auto results = harness.op("max_pool2d", {x}, t.attributes());
  const ValueId r = harness.random("r", t.y());
  const std::vector<float> weights = harness.read<float>(r);
  const auto loss = [&] {
    harness.write(x, values);
    harness.run("plain");
    const auto y = harness.read<float>(results[0]);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += double{y[i]} * weights[i];
    return sum;
  };
  std::vector<double> numeric;
  for (float& v : values) {
    const float kept = v;
    v = kept + 0.25f;
    const double above = loss();
    v = kept - 0.25f;
    numeric.push_back((above - loss()) / 0.5);
    v = kept;
  }
  loss();
  const ValueId dx = harness.op("max_pool2d_grad", {r, results[1]}, t.grad_attributes()).front();
  harness.run("plain");
  expect_close(harness.read<float>(dx), numeric, 1e-6);
}

TEST(MaxPool2d, GradientRule) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 7, 6, 3});
  const auto results = harness.op("max_pool2d", {x});
  const graph::OpId op = harness.graph()[results[0]].producer;
  const ValueId g = harness.random("g", {2, 3, 3, 3});
  graph::GradientContext ctx(harness.builder(), op, {g, ValueId{}}, {true});
  harness.graph()[op].definition->gradient(ctx);
  EXPECT_EQ(harness.graph()[ctx.operand_gradient(0)].shape, (Shape{2, 7, 6, 3}));
  graph::GradientContext unwanted(harness.builder(), op, {g, ValueId{}}, {false});
  harness.graph()[op].definition->gradient(unwanted);
  EXPECT_FALSE(unwanted.operand_gradient(0));
}

std::string error_of(DType type, const Shape& x, graph::Attributes attributes = {}) {
  OpHarness harness;
  try {
    harness.op("max_pool2d",
               {harness.builder().declare("x", type, x, graph::StorageClass::activation)},
               std::move(attributes));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MaxPool2d, ShapeRuleErrors) {
  const Shape x{1, 4, 4, 2};
  EXPECT_EQ(error_of(DType::uint8, x),
            "max_pool2d: operand 'x' (x) of type uint8; expected float32");
  EXPECT_EQ(error_of(DType::float32, {4, 4}),
            "max_pool2d: operand 'x' (x) of shape [4, 4]; expected rank 4, [N, H, W, C]");
  EXPECT_EQ(error_of(DType::float32, {1, 1, 4, 2}),
            "max_pool2d: kernel 2x2 larger than the padded input 1x4; expected a kernel that fits "
            "(hint: more padding, or fewer poolings and strides before it)");
  EXPECT_EQ(error_of(DType::float32, x, {{"kernel", List{16, 8}}}),
            "max_pool2d: kernel 16x8; expected at most 127 taps (hint: pool in two steps)");
  EXPECT_EQ(error_of(DType::float32, x, {{"padding", List{0, 2}}}),
            "max_pool2d: padding 0x2 with kernel 2x2; expected padding smaller than the kernel, so "
            "that no window is all padding");
  EXPECT_EQ(error_of(DType::float32, x, {{"stride", List{2, 0}}}),
            "max_pool2d: stride=[2, 0]; expected two integers (rows, columns) of at least 1 and "
            "below 2^31");
  OpHarness harness;
  const ValueId g = harness.random("g", {1, 2, 3, 2});
  const ValueId code = harness.declare("code", DType::uint8, {1, 2, 3, 2});
  try {
    harness.op("max_pool2d_grad", {g, code}, {{"size", List{4, 4}}});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "max_pool2d_grad: operand 'gradient' (g) of shape [1, 2, 3, 2]; expected "
                 "[1, 2, 2, 2], as the pooling's output has");
  }
}

}  // namespace
}  // namespace arenite::codelets::testing
