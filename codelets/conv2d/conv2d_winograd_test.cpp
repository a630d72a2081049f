// The Winograd kernels where they have something to get wrong: tiles beyond an odd edge, channels
// that fill no vector or panel, halos and borders of all widths, blocks that end within a sample.
#include "codelets/avx512.hpp"
#include "codelets/conv2d/reference.hpp"

namespace arenite::codelets::testing::convolution {
namespace {

std::vector<Case> winograd_cases() {
  std::vector<Case> all;
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return from.begin()[random() % from.size()];
  };
  const auto add = [&](Case t) {
    t.kh = t.kw = 3;
    t.x_halo = static_cast<int>(pick({0, 1, 2, 3}));
    t.y_halo = static_cast<int>(pick({0, 1, 2, 3}));
    t.bias = pick({0, 1, 1}) == 1;
    if (t.valid()) all.push_back(t);
  };
  for (std::int64_t size = 1; size <= 12; ++size) {  // one tile, and all edges
    add({.n = 12, .h = size, .w = 13 - size, .c = 16, .k = 32, .ph = 1, .pw = 1});
    add({.n = 16, .h = size, .w = 3, .c = 32, .k = 16, .ph = size % 4, .pw = size / 4});
  }
  for (const std::int64_t padding : {0, 1, 2, 3, 4}) {
    for (int i = 0; i < 7; ++i) {
      add({.n = pick({3, 4, 5}),
           .h = pick({5, 7, 8, 9, 14}),
           .w = pick({6, 10, 11, 16, 23}),
           .c = pick({16, 17, 20, 31, 32, 33, 48, 64}),
           .k = pick({1, 16, 17, 20, 24, 31, 32, 33, 47, 48, 64, 65}),
           .ph = padding,
           .pw = pick({padding, padding, 0, 1, 2})});
    }
  }
  // Long sums, and weights beyond a cache, of which each sweep serves more tiles.
  add({.n = 5, .h = 8, .w = 8, .c = 256, .k = 112, .ph = 1, .pw = 1});
  add({.n = 4, .h = 7, .w = 9, .c = 20, .k = 272, .ph = 1, .pw = 1});
  add({.n = 4, .h = 5, .w = 8, .c = 600, .k = 32, .ph = 1, .pw = 1});
  return all;
}

/// A good part of the shapes has enough channels and tiles.
void expect_winograd(Runs& runs, std::size_t all) {
  EXPECT_EQ(runs["plain"], all);
  if (built_with_avx512()) {
    EXPECT_GT(runs["winograd"], all / 3);
  } else {
    EXPECT_EQ(runs["winograd"], 0u);
  }
}

TEST(Conv2dWinograd, ForwardAgreesWithReference) {
  Runs runs;
  const std::vector<Case> all = winograd_cases();
  for (const Case& t : all) check_forward(t, runs);
  expect_winograd(runs, all.size());
}

TEST(Conv2dWinograd, WithReluAgreesWithReference) {
  Runs runs;
  const std::vector<Case> all = winograd_cases();
  for (const Case& t : all) check_forward(t, runs, true);
  expect_winograd(runs, all.size());
}

TEST(Conv2dWinograd, InputGradientAgreesWithReference) {
  Runs runs;
  const std::vector<Case> all = winograd_cases();
  for (const Case& t : all) check_grad_input(t, runs);
  expect_winograd(runs, all.size());
}

TEST(Conv2dWinograd, InputGradientBehindAReluAgreesWithReference) {
  Runs runs;
  const std::vector<Case> all = winograd_cases();
  for (const Case& t : all) check_grad_input(t, runs, true);
  expect_winograd(runs, all.size());
}

/// Small whole numbers leave nothing to round, so that all kernels agree to the bit, and a NaN
/// reaches the outputs that it has a product with, and no others.
TEST(Conv2dWinograd, WholeNumbersAreExact) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto whole = [](OpHarness& harness, ValueId id, bool holes) {
    auto values = harness.read<float>(id);
    for (float& v : values) {
      v = std::floor(v);
      if (holes && harness.engine()() % values.size() < 4) v = nan;
    }
    harness.write(id, values);
  };
  const auto compare = [](OpHarness& harness, ValueId result, const std::string& what) {
    harness.run("plain");
    const auto expected = harness.read<float>(result);
    const auto is_nan = [](float v) { return std::isnan(v); };
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), is_nan)) << what;
    for (const std::string& name : harness.cpu_kernels()) {
      harness.run(name);
      const auto actual = harness.read<float>(result);
      for (std::size_t i = 0; i < actual.size(); ++i) {
        if (is_nan(expected[i])) {
          ASSERT_TRUE(is_nan(actual[i])) << name << " " << what << " at " << i;
        } else {
          ASSERT_EQ(actual[i], expected[i]) << name << " " << what << " at " << i;
        }
      }
    }
  };
  for (const auto& [c, k] : {std::pair{16, 16}, {17, 33}, {40, 64}}) {
    const Case t{.n = 3, .h = 9, .w = 12, .c = c, .k = k, .kh = 3, .kw = 3, .ph = 1, .pw = 2};
    {
      OpHarness harness;
      const ValueId x = harness.random("x", t.x(), -2, 3),
                    w = harness.random("w", t.weight(), -1, 2),
                    b = harness.random("b", {t.k}, -3, 4);
      whole(harness, x, true);
      whole(harness, w, false);
      whole(harness, b, false);
      compare(harness, harness.op("conv2d", {x, w, b}, t.attributes()).front(), t.text());
    }
    OpHarness harness;
    const ValueId g = harness.random("g", t.y(), -2, 3), w = harness.random("w", t.weight(), -1, 2);
    whole(harness, g, true);
    whole(harness, w, false);
    graph::Attributes attributes = t.attributes();
    attributes.set("size", std::vector{t.h, t.w});
    compare(harness, harness.op("conv2d_grad_input", {g, w}, attributes).front(), t.text());
  }
}

/// It takes the layers that it is made for, and none of the others.
TEST(Conv2dWinograd, TakesWhatPays) {
  const auto first = [](const Case& t) {
    OpHarness harness;
    const ValueId x = harness.declare("x", DType::float32, t.x()),
                  w = harness.declare("w", DType::float32, t.weight());
    harness.op("conv2d", {x, w}, t.attributes());
    return harness.cpu_kernels().front();
  };
  const Case vgg{.n = 16, .h = 16, .w = 16, .c = 64, .k = 128, .kh = 3, .kw = 3, .ph = 1, .pw = 1};
  Case strided = vgg, dilated = vgg, wide = vgg, one_pixel = vgg, grey = vgg;
  strided.sw = 2;
  dilated.dh = 2;
  wide.kw = 5;
  one_pixel.n = one_pixel.h = one_pixel.w = 1;
  grey.c = 1;
  EXPECT_EQ(first(vgg) == "winograd", built_with_avx512());
  for (const Case& t : {strided, dilated, wide, one_pixel, grey}) {
    EXPECT_NE(first(t), "winograd") << t.text();
  }
}

}  // namespace
}  // namespace arenite::codelets::testing::convolution
