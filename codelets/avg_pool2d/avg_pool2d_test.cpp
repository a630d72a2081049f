// Every average pooling kernel against plain loops in double, and those against central
// differences.
#include "codelets/testing.hpp"

namespace arenite::codelets::testing {
namespace {

using List = std::vector<std::int64_t>;

struct Case {
  std::int64_t n, h, w, c;
  std::int64_t kh = 2, kw = 2, sh = 2, sw = 2, ph = 0, pw = 0;
  bool count_padding = true;
  int x_halo = 0, y_halo = 0;

  std::int64_t oh() const { return (h + 2 * ph - kh) / sh + 1; }
  std::int64_t ow() const { return (w + 2 * pw - kw) / sw + 1; }
  bool valid() const { return h + 2 * ph >= kh && w + 2 * pw >= kw && ph < kh && pw < kw; }
  Shape x() const { return {n, h, w, c}; }
  Shape y() const { return {n, oh(), ow(), c}; }

  graph::Attributes attributes() const {
    return {{"kernel", List{kh, kw}},
            {"stride", List{sh, sw}},
            {"padding", List{ph, pw}},
            {"count_padding", std::int64_t{count_padding}}};
  }
  graph::Attributes grad_attributes() const {
    graph::Attributes all = attributes();
    all.set("size", List{h, w});
    return all;
  }
  std::string text() const {
    return to_string(x()) + " kernel " + std::to_string(kh) + "x" + std::to_string(kw) +
           " stride " + std::to_string(sh) + "x" + std::to_string(sw) + " padding " +
           std::to_string(ph) + "x" + std::to_string(pw) + (count_padding ? " counted" : "") +
           " halos " + std::to_string(x_halo) + "," + std::to_string(y_halo);
  }

  /// The definition itself.
  std::vector<double> average(const std::vector<double>& values) const {
    std::vector<double> all;
    for (std::int64_t o = 0; o < y().elements(); ++o) {
      const std::int64_t q = o % c, ox = o / c % ow(), oy = o / (c * ow()) % oh(),
                         i = o / (c * ow() * oh());
      double sum = 0;
      std::int64_t inside = 0;
      for (std::int64_t tap = 0; tap < kh * kw; ++tap) {
        const std::int64_t iy = oy * sh - ph + tap / kw, ix = ox * sw - pw + tap % kw;
        if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
        sum += values[static_cast<std::size_t>(((i * h + iy) * w + ix) * c + q)];
        ++inside;
      }
      all.push_back(sum / static_cast<double>(count_padding ? kh * kw : inside));
    }
    return all;
  }

  /// Its transpose, pixel by pixel: which windows hold it, and how many pixels each of them has.
  std::vector<double> spread(const std::vector<double>& gradient) const {
    const auto inside = [](std::int64_t o, std::int64_t stride, std::int64_t padding,
                           std::int64_t kernel, std::int64_t size) {
      const std::int64_t first = o * stride - padding;
      return std::min(first + kernel, size) - std::max<std::int64_t>(first, 0);
    };
    std::vector<double> all;
    for (std::int64_t at = 0; at < x().elements(); ++at) {
      const std::int64_t q = at % c, ix = at / c % w, iy = at / (c * w) % h, i = at / (c * w * h);
      double sum = 0;
      for (std::int64_t oy = 0; oy < oh(); ++oy) {
        for (std::int64_t ox = 0; ox < ow(); ++ox) {
          const std::int64_t ky = iy - (oy * sh - ph), kx = ix - (ox * sw - pw);
          if (ky < 0 || ky >= kh || kx < 0 || kx >= kw) continue;
          const std::int64_t divisor =
              count_padding ? kh * kw : inside(oy, sh, ph, kh, h) * inside(ox, sw, pw, kw, w);
          sum += gradient[static_cast<std::size_t>(((i * oh() + oy) * ow() + ox) * c + q)] /
                 static_cast<double>(divisor);
        }
      }
      all.push_back(sum);
    }
    return all;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all{
      {.n = 2, .h = 28, .w = 28, .c = 6},
      {.n = 1, .h = 14, .w = 14, .c = 64, .x_halo = 2, .y_halo = 1},
      {.n = 2, .h = 5, .w = 7, .c = 21, .x_halo = 1},  // a row and a column in no window
      {.n = 2, .h = 13, .w = 13, .c = 32, .kh = 3, .kw = 3, .ph = 1, .pw = 1},
      {.n = 2, .h = 7, .w = 6, .c = 37, .kh = 7, .kw = 6, .sh = 7, .sw = 6},  // the whole image
      {.n = 1, .h = 56, .w = 40, .c = 5, .kh = 56, .kw = 40, .sh = 1, .sw = 1, .y_halo = 1},
      {.n = 1, .h = 1, .w = 1, .c = 3, .kh = 1, .kw = 1, .sh = 1, .sw = 1},
      {.n = 1, .h = 30, .w = 13, .c = 2, .kh = 200, .kw = 1, .sh = 3, .ph = 150},
  };
  std::mt19937 random(12);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  while (all.size() < 160) {
    const Case t{.n = pick({1, 2, 3}),
                 .h = pick({1, 2, 5, 6, 9}),
                 .w = pick({1, 3, 4, 7, 10}),
                 .c = pick({1, 3, 4, 16, 23, 33}),
                 .kh = pick({1, 2, 2, 3, 4}),
                 .kw = pick({1, 2, 2, 3, 5}),
                 .sh = pick({1, 2, 2, 3, 5}),
                 .sw = pick({1, 2, 2, 3}),
                 .ph = pick({0, 0, 1, 2}),
                 .pw = pick({0, 0, 1, 3}),
                 .count_padding = pick({0, 1}) == 1,
                 .x_halo = static_cast<int>(pick({0, 1, 2, 3})),
                 .y_halo = static_cast<int>(pick({0, 1, 2}))};
    if (t.valid()) all.push_back(t);
  }
  return all;
}

TEST(AvgPool2d, ForwardAgreesWithReference) {
  unsigned seed = 0;
  for (const Case& t : cases()) {
    OpHarness harness(++seed);
    const ValueId x = harness.random("x", t.x(), -1, 1, t.x_halo);
    const ValueId y = harness.op("avg_pool2d", {x}, t.attributes()).front();
    ASSERT_EQ(harness.graph()[y].shape, t.y());
    harness.set_halo(y, t.y_halo);
    const std::vector<double> expected = t.average(as_doubles(harness.read<float>(x)));
    const auto names = harness.cpu_kernels();
    ASSERT_EQ(names.back(), "plain");
    for (const std::string& name : names) {
      EXPECT_EQ(harness.run(name), runtime::StatusWord::ok);
      expect_close(harness.read<float>(y), expected, 2e-6, name + " " + t.text());
      EXPECT_TRUE(harness.halo_is_zero(y)) << name << " " << t.text();
    }
  }
}

TEST(AvgPool2d, GradientAgreesWithReference) {
  unsigned seed = 0;
  for (const Case& t : cases()) {
    OpHarness harness(++seed);
    const ValueId g = harness.random("g", t.y(), -1, 1, t.y_halo);
    const ValueId dx = harness.op("avg_pool2d_grad", {g}, t.grad_attributes()).front();
    ASSERT_EQ(harness.graph()[dx].shape, t.x());
    harness.set_halo(dx, t.x_halo);
    const std::vector<double> expected = t.spread(as_doubles(harness.read<float>(g)));
    for (const std::string& name : harness.cpu_kernels()) {
      EXPECT_EQ(harness.run(name), runtime::StatusWord::ok);
      expect_close(harness.read<float>(dx), expected, 2e-6, name + " " + t.text());
      EXPECT_TRUE(harness.halo_is_zero(dx)) << name << " " << t.text();
    }
  }
}

/// The rule and its kernels, against differences of the definition. The pooling is linear: there is
/// no kink to keep away from.
TEST(AvgPool2d, GradientAgreesWithCentralDifferences) {
  unsigned seed = 100;
  int compared = 0;
  for (const Case& t : cases()) {
    if (t.x().elements() > 400) continue;  // each element costs two poolings
    OpHarness harness(++seed);
    const ValueId x = harness.random("x", t.x(), -1, 1, t.x_halo),
                  r = harness.random("r", t.y(), -1, 1, t.y_halo);
    const ValueId y = harness.op("avg_pool2d", {x}, t.attributes()).front();
    ASSERT_EQ(harness.graph()[y].shape, t.y());
    const std::vector<double> numeric =
        numeric_gradient([&](const std::vector<double>& values) { return t.average(values); },
                         as_doubles(harness.read<float>(x)), as_doubles(harness.read<float>(r)));
    const ValueId dx = harness.gradient({r}, {true}).front();
    expect_close(harness.read<float>(dx), numeric, 2e-6, t.text());
    ++compared;
  }
  EXPECT_GE(compared, 40);
}

TEST(AvgPool2d, OfTheWholeImageIsTheMean) {
  OpHarness harness;
  const ValueId x = harness.declare("x", DType::float32, {1, 3, 2, 2});
  harness.write<float>(x, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 9, 90});
  const ValueId y = harness.op("avg_pool2d", {x}, {{"kernel", List{3, 2}}}).front();
  EXPECT_EQ(harness.graph()[y].shape, (Shape{1, 1, 1, 2}));
  harness.run("plain");
  expect_close(harness.read<float>(y), std::vector<double>{4, 40}, 1e-6);
  const ValueId g = harness.declare("g", DType::float32, {1, 1, 1, 2});
  harness.write<float>(g, {6, 12});
  const std::vector<float> dx = harness.read<float>(harness.gradient({g}, {true}).front());
  expect_close(dx, std::vector<double>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, 1e-6);
}

TEST(AvgPool2d, CountsPaddingUnlessToldNotTo) {
  for (const bool counted : {true, false}) {
    OpHarness harness;
    const ValueId x = harness.declare("x", DType::float32, {1, 2, 2, 1});
    harness.write<float>(x, {4, 4, 4, 4});
    graph::Attributes attributes{
        {"kernel", List{2, 2}}, {"stride", List{1, 1}}, {"padding", List{1, 1}}};
    if (!counted) attributes.set("count_padding", std::int64_t{0});
    const ValueId y = harness.op("avg_pool2d", {x}, attributes).front();
    harness.run("plain");
    const std::vector<double> with{1, 2, 1, 2, 4, 2, 1, 2, 1}, without(9, 4);
    expect_close(harness.read<float>(y), counted ? with : without, 1e-6);
  }
}

TEST(AvgPool2d, GradientRuleMakesOnlyWhatIsWanted) {
  OpHarness harness;
  const ValueId x = harness.random("x", {2, 7, 6, 3}), g = harness.random("g", {2, 3, 3, 3});
  harness.op("avg_pool2d", {x});
  EXPECT_EQ(harness.graph()[harness.gradient({g}, {true}).front()].shape, (Shape{2, 7, 6, 3}));
  EXPECT_FALSE(harness.gradient({g}, {false}).front());
  EXPECT_FALSE(harness.gradient({ValueId{}}, {true}).front());
}

void expect_refused(DType type, const Shape& x, graph::Attributes attributes,
                    const std::string& message) {
  OpHarness harness;
  const ValueId value = harness.declare("x", type, x);
  expect_error([&] { harness.op("avg_pool2d", {value}, std::move(attributes)); }, message);
}

TEST(AvgPool2d, ShapeRuleErrors) {
  const Shape x{1, 4, 4, 2};
  expect_refused(DType::uint8, x, {},
                 "avg_pool2d: operand 'x' (x) of type uint8; expected float32");
  expect_refused(DType::float32, {4, 4}, {},
                 "avg_pool2d: operand 'x' (x) of shape [4, 4]; expected rank 4, [N, H, W, C]");
  expect_refused(DType::float32, {1, 4, 0, 2}, {},
                 "avg_pool2d: operand 'x' (x) of shape [1, 4, 0, 2]; expected [N, H, W, C] without "
                 "an empty dimension");
  expect_refused(DType::float32, {1, 1, 4, 2}, {},
                 "avg_pool2d: kernel 2x2 larger than the padded input 1x4; expected a kernel that "
                 "fits (hint: more padding, or fewer poolings and strides before it)");
  expect_refused(DType::float32, x, {{"padding", List{0, 2}}},
                 "avg_pool2d: padding 0x2 with kernel 2x2; expected padding smaller than the "
                 "kernel, so that no window is all padding");
  expect_refused(DType::float32, x, {{"kernel", List{2}}},
                 "avg_pool2d: kernel=[2]; expected two integers (rows, columns) of at least 1 and "
                 "below 2^31");
  expect_refused(DType::float32, x, {{"stride", List{2, 0}}},
                 "avg_pool2d: stride=[2, 0]; expected two integers (rows, columns) of at least 1 "
                 "and below 2^31");
  expect_refused(DType::float32, x, {{"padding", List{-1, 0}}},
                 "avg_pool2d: padding=[-1, 0]; expected two integers (rows, columns) of at least 0 "
                 "and below 2^31");
  expect_refused(DType::float32, x, {{"count_padding", std::int64_t{2}}},
                 "avg_pool2d: count_padding=2; expected 1 (divide by the window's area) or 0 (by "
                 "its pixels inside the image)");
}

TEST(AvgPool2d, GradientShapeRuleErrors) {
  OpHarness harness;
  const ValueId g = harness.random("g", {1, 2, 3, 2}),
                bytes = harness.declare("b", DType::uint8, {1, 2, 2, 2});
  expect_error(
      [&] {
        harness.op("avg_pool2d_grad", {g}, {{"size", List{4, 4}}});
      },
      "avg_pool2d_grad: operand 'gradient' (g) of shape [1, 2, 3, 2]; expected "
      "[1, 2, 2, 2], as the pooling's output has");
  expect_error([&] { harness.op("avg_pool2d_grad", {g}); },
               "avg_pool2d_grad: no attribute 'size'; expected size=…");
  expect_error(
      [&] {
        harness.op("avg_pool2d_grad", {bytes}, {{"size", List{4, 4}}});
      },
      "avg_pool2d_grad: operand 'gradient' (b) of type uint8; expected float32");
  expect_error(
      [&] {
        harness.op("avg_pool2d_grad", {g},
                   {{"size", List{4, 6}}, {"count_padding", std::int64_t{-1}}});
      },
      "avg_pool2d_grad: count_padding=-1; expected 1 (divide by the window's area) or 0 (by its "
      "pixels inside the image)");
}

}  // namespace
}  // namespace arenite::codelets::testing
