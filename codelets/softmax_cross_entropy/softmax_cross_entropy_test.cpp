#include "codelets/softmax_cross_entropy/softmax_cross_entropy.hpp"
#include "codelets/softmax_cross_entropy/exponential.hpp"
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

struct Reference {
  double sum = 0;
  double correct = 0;
  std::vector<double> gradient;  ///< not divided
};

Reference reference(const std::vector<double>& logits, const std::vector<std::int32_t>& labels) {
  const std::size_t classes = logits.size() / labels.size();
  Reference all;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const double* row = &logits[r * classes];
    const auto label = static_cast<std::size_t>(labels[r]);
    const double* largest = std::max_element(row, row + classes);  // the first of equal ones
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(row[c] - *largest);
    all.sum += std::log(sum) + *largest - row[label];
    all.correct += largest == row + label ? 1 : 0;
    for (std::size_t c = 0; c < classes; ++c) {
      all.gradient.push_back(std::exp(row[c] - *largest) / sum - (c == label ? 1 : 0));
    }
  }
  return all;
}

ValueId random_labels(OpHarness& h, const std::string& name, std::int64_t rows,
                      std::int64_t classes) {
  const auto id = h.declare(name, DType::int32, {rows});
  std::uniform_int_distribution<std::int32_t> label(0, static_cast<std::int32_t>(classes) - 1);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
  for (auto& v : labels) v = label(h.engine());
  h.write(id, labels);
  return id;
}

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  for (float x = -87.3f; x <= 88.3f; x += 0.00037f) {
    const double exact = std::exp(static_cast<double>(x));
    const auto near = static_cast<float>(exact);
    const double ulp = static_cast<double>(std::nextafter(near, inf)) - static_cast<double>(near);
    worst = std::max(worst, std::fabs(static_cast<double>(exponential(x)) - exact) / ulp);
  }
  EXPECT_LE(worst, 2.0);
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-87.4f), 0);
  EXPECT_EQ(exponential(-1e30f), 0);
  EXPECT_EQ(exponential(-inf), 0);
  EXPECT_TRUE(std::isnan(exponential(nan)));
}

TEST(SoftmaxCrossEntropy, MatchesTheReferenceForManyShapes) {
  OpHarness h(37);
  std::uniform_int_distribution<int> rows(1, 70), classes(1, 60);
  for (int i = 0; i < 60; ++i) {
    std::int64_t n = rows(h.engine()), c = classes(h.engine());
    if (i == 0) n = 64, c = 10;
    if (i == 1) n = 3, c = 1000;
    if (i == 2) n = 5, c = 16;
    if (i == 3) n = 5, c = 1;
    const std::int64_t divisor = i % 2 == 0 ? 0 : 64;
    SCOPED_TRACE(std::to_string(n) + "x" + std::to_string(c));
    const std::string tag = std::to_string(i);
    const auto logits = h.random("logits" + tag, {n, c}, -4, 4),
               labels = random_labels(h, "y" + tag, n, c);
    const auto results = h.op("softmax_cross_entropy", {logits, labels}, {{"divisor", divisor}});
    ASSERT_EQ(h.run("plain"), runtime::StatusWord::ok);
    Reference expected = reference(as_doubles(h.read<float>(logits)), h.read<std::int32_t>(labels));
    const auto by = static_cast<double>(divisor == 0 ? n : divisor);
    for (double& g : expected.gradient) g /= by;
    const double tolerance = c == 1 ? 1e-6 : 0;  // one class: the loss is 0
    EXPECT_NEAR(h.read<float>(results[0])[0], expected.sum / by,
                1e-6 * std::fabs(expected.sum / by) + tolerance);
    EXPECT_NEAR(h.read<double>(results[1])[0], expected.sum,
                1e-6 * std::fabs(expected.sum) + tolerance);
    EXPECT_EQ(h.read<double>(results[1])[1], expected.correct);
    if (c > 1) expect_close(h.read<float>(results[2]), expected.gradient, 1e-6);
  }
}

TEST(SoftmaxCrossEntropy, GradientAgreesWithCentralDifferences) {
  OpHarness h(41);
  const auto logits = h.random("logits", {5, 7}, -2, 2), labels = random_labels(h, "y", 5, 7);
  const auto results = h.op("softmax_cross_entropy", {logits, labels});
  h.run("plain");
  const auto classes = h.read<std::int32_t>(labels);
  const auto mean = [&](const std::vector<double>& v) {
    return std::vector{reference(v, classes).sum / 5};
  };
  const auto expected = numeric_gradient(mean, as_doubles(h.read<float>(logits)), {1});

  // As the seed, the gradient is the third result itself.
  const std::size_t ops = h.graph().op_count();
  const auto seeded = h.gradient({{}, {}, {}}, {true, false}, {}, 0).front();
  EXPECT_EQ(seeded, results[2]);
  EXPECT_EQ(h.graph().op_count(), ops);
  expect_close(h.read<float>(seeded), expected, 1e-6);

  // Further down, it is scaled by the loss' own gradient.
  const auto factor = h.declare("factor", DType::float32, {1});
  h.write<float>(factor, {-3});
  const auto scaled = h.gradient({factor, {}, {}}, {true, false}).front();
  std::vector<double> times;
  for (double v : expected) times.push_back(-3 * v);
  expect_close(h.read<float>(scaled), times, 1e-6);

  EXPECT_FALSE(h.gradient({factor, {}, {}}, {false, false}).front());
  EXPECT_FALSE(h.gradient({{}, {}, {}}, {true, false}).front());
  expect_error(
      [&] {
        h.gradient({{}, factor, {}}, {true, false});
      },
      "a gradient of result 'statistics'; expected a gradient of 'loss' only");
  expect_error(
      [&] {
        h.gradient({{}, {}, {}}, {true, false}, {}, 2);
      },
      "a gradient of result 'logits_gradient'; expected a gradient of 'loss' only");
}

TEST(SoftmaxCrossEntropy, IsStableForHugeLogits) {
  OpHarness h;
  const auto logits = h.declare("logits", DType::float32, {3, 3}),
             labels = h.declare("y", DType::int32, {3});
  h.write<float>(logits, {1e30f, -1e30f, 0, 1e4f, 1e4f, -1e4f, -3e38f, 0, 3e38f});
  h.write<std::int32_t>(labels, {0, 1, 2});
  const auto results = h.op("softmax_cross_entropy", {logits, labels});
  h.run("plain");
  EXPECT_NEAR(h.read<double>(results[1])[0], std::log(2.0), 1e-7);
  EXPECT_EQ(h.read<double>(results[1])[1], 2);  // of two equal logits the first wins
  const std::vector<double> expected{0, 0, 0, 0.5 / 3, -0.5 / 3, 0, 0, 0, 0};
  expect_close(h.read<float>(results[2]), expected, 1e-6);
}

TEST(SoftmaxCrossEntropy, AnImpossibleClassCostsInfinitelyMuch) {
  OpHarness h;
  const auto logits = h.declare("logits", DType::float32, {2, 3}),
             labels = h.declare("y", DType::int32, {2});
  h.write<float>(logits, {-inf, 0, 0, -inf, 1, -inf});
  h.write<std::int32_t>(labels, {0, 1});
  const auto results = h.op("softmax_cross_entropy", {logits, labels});
  h.run("plain");
  EXPECT_EQ(h.read<float>(results[0])[0], inf);
  EXPECT_EQ(h.read<float>(results[2]), (std::vector<float>{-0.5f, 0.25f, 0.25f, 0, 0, 0}));
  EXPECT_EQ(h.read<double>(results[1])[1], 1);
}

TEST(SoftmaxCrossEntropy, NaNStaysInItsRowAndIsNeverCorrect) {
  OpHarness h;
  for (std::int64_t classes : {3, 16, 40}) {
    for (std::int32_t at : {0, 1, 2}) {
      const std::string tag = std::to_string(classes) + "." + std::to_string(at);
      const auto logits = h.random("logits" + tag, {3, classes}),
                 labels = random_labels(h, "y" + tag, 3, classes);
      auto values = h.read<float>(logits);
      values[static_cast<std::size_t>(classes + at)] = nan;
      values[static_cast<std::size_t>(classes)] += 100;  // the largest, where it is not the NaN
      h.write(logits, values);
      h.write<std::int32_t>(labels, {1, 0, 1});
      const auto results = h.op("softmax_cross_entropy", {logits, labels});
      EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
      EXPECT_TRUE(std::isnan(h.read<float>(results[0])[0]));
      EXPECT_LE(h.read<double>(results[1])[1], 2);
      const auto gradient = h.read<float>(results[2]);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        EXPECT_EQ(std::isnan(gradient[i]), i / static_cast<std::size_t>(classes) == 1) << i;
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, TheGradientMayTakeThePlaceOfTheLogits) {
  OpHarness h(43);
  for (std::int64_t classes : {1, 10, 16, 45}) {
    const std::string tag = std::to_string(classes);
    const auto logits = h.random("logits" + tag, {20, classes}, -3, 3);
    const auto labels = random_labels(h, "y" + tag, 20, classes);
    const auto apart = h.op("softmax_cross_entropy", {logits, labels});
    h.run("plain");
    const auto together = h.op("softmax_cross_entropy", {logits, labels});
    h.in_place(2, 0);
    h.run("plain");
    EXPECT_EQ(h.read<float>(together[0]), h.read<float>(apart[0]));
    EXPECT_EQ(h.read<double>(together[1]), h.read<double>(apart[1]));
    EXPECT_EQ(h.read<float>(together[2]), h.read<float>(apart[2]));
  }
}

TEST(SoftmaxCrossEntropy, ReportsLabelsOutOfRange) {
  OpHarness h;
  const auto logits = h.random("logits", {4, 3}), labels = h.declare("y", DType::int32, {4});
  const auto results = h.op("softmax_cross_entropy", {logits, labels});
  for (std::int32_t bad : {3, -1, std::numeric_limits<std::int32_t>::max(),
                           std::numeric_limits<std::int32_t>::min()}) {
    h.write<std::int32_t>(labels, {0, bad, 2, 1});
    const std::uint64_t status = h.run("plain");
    EXPECT_EQ(runtime::StatusWord::op_of(status), 0u);
    EXPECT_EQ(runtime::StatusWord::code_of(status), label_fault(1));
    const auto gradient = h.read<float>(results[2]);
    for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(gradient[i] == 0, i / 3 == 1);
    EXPECT_TRUE(std::isfinite(h.read<float>(results[0])[0]));
  }
}

TEST(SoftmaxCrossEntropy, ASampleCountsAsItsWeightSays) {
  OpHarness h(47);
  for (std::int64_t classes : {7, 40}) {
    const std::string tag = std::to_string(classes);
    const auto logits = h.random("logits" + tag, {4, classes}, -3, 3),
               labels = random_labels(h, "y" + tag, 4, classes),
               weights = h.declare("weights" + tag, DType::float32, {4});
    const auto known = h.read<std::int32_t>(labels);
    const Reference all = reference(as_doubles(h.read<float>(logits)), known);
    const auto row = static_cast<std::size_t>(classes);
    double sum = 0;
    for (std::size_t r = 0; r < 4;
         ++r) {  // each alone, twice; nothing is wrong with what is not looked at
      std::vector<float> one(4, 0);
      one[r] = 2;
      h.write(weights, one);
      std::vector<std::int32_t> wrong(4, -100);
      wrong[r] = known[r];
      h.write(labels, wrong);
      const auto results = h.op("softmax_cross_entropy", {logits, labels, weights});
      EXPECT_EQ(h.run("plain"), runtime::StatusWord::ok);
      sum += h.read<double>(results[1])[0];
      const auto gradient = h.read<float>(results[2]);
      for (std::size_t i = 0; i < gradient.size(); ++i)
        EXPECT_NEAR(gradient[i], i / row == r ? 2 * all.gradient[i] / 4 : 0, 1e-6);
    }
    EXPECT_NEAR(sum, 2 * all.sum, 1e-5);
  }
}

TEST(SoftmaxCrossEntropy, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto logits = h.random("logits", {4, 3}), none = h.random("none", {0, 3});
  const auto labels = h.declare("y", DType::int32, {5}),
             wide = h.declare("wide", DType::int64, {4}),
             empty = h.declare("empty", DType::int32, {0}),
             good = h.declare("good", DType::int32, {4});
  const auto add = [&](ValueId x, ValueId y, std::int64_t divisor = 0) {
    h.op("softmax_cross_entropy", {x, y}, {{"divisor", divisor}});
  };
  expect_error([&] { add(logits, labels); },
               "softmax_cross_entropy: operand 'labels' (y) of shape [5]; expected [4], one label "
               "for each row of "
               "logits [4, 3]");
  expect_error([&] { add(logits, wide); },
               "softmax_cross_entropy: operand 'labels' (wide) of type int64; expected int32");
  expect_error([&] { add(none, empty); },
               "softmax_cross_entropy: operand 'logits' (none) of shape [0, 3]; expected at least "
               "one sample and one "
               "class");
  expect_error(
      [&] {
        h.op("softmax_cross_entropy", {logits, good, none});
      },
      "softmax_cross_entropy: operand 'weights' (none) of shape [0, 3]; expected [4], one "
      "weight for each row of logits [4, 3]");
  expect_error(
      [&] { add(logits, good, -1); },
      "softmax_cross_entropy: divisor=-1; expected at least 1, or 0 for the number of samples");
}

}  // namespace
}  // namespace arenite::codelets::testing
