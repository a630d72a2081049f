#include <arenite/error.hpp>
#include <arenite/train/classes.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace arenite::train {
namespace {

template <class T>
Predictions scores(std::vector<T> values, std::int64_t classes) {
  Predictions made{.type = dtype_of<T>,
                   .shape = {std::ssize(values) / classes, classes},
                   .bytes = std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

template <class T>
Column labels(const std::vector<T>& values) {
  return {
      .input = "labels", .data = values.data(), .type = dtype_of<T>, .shape = {std::ssize(values)}};
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// Equal scores: the first class counts. What is no number is right about nothing.
const std::vector<float> five{0, 2, 1, 3, 1, 0, 1, 1, 0, nan, -1, -2, 0, nan, 5};
const std::vector<std::int64_t> right{1, 0, 1, 2, 0};

TEST(Classes, AreTakenForThoseWithTheHighestScores) {
  const Confusion found = confusion(scores(five, 3), labels(right));
  EXPECT_EQ(found.classes, 3);
  EXPECT_EQ(found.counts, (std::vector<std::int64_t>{1, 0, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(found.unanswered, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_EQ(found.of_class(1), 2);
  EXPECT_EQ(found.of_class(2), 1);
  EXPECT_EQ(found.taken_for(0), 2);
  EXPECT_EQ(found.accuracy(), 0.4);
  EXPECT_EQ(found.recall(0), 0.5);
  EXPECT_EQ(found.precision(1), 1);
  EXPECT_EQ(found.recall(2), 0);
  const Confusion none = confusion(scores(std::vector{1.0, 0.0}, 2), labels(std::vector{0}));
  EXPECT_TRUE(std::isnan(none.recall(1)));
  EXPECT_TRUE(std::isnan(none.precision(1)));
}

TEST(Classes, AreAmongTheLikeliest) {
  EXPECT_EQ(top_k(scores(five, 3), labels(right), 1), 0.4);
  EXPECT_EQ(top_k(scores(five, 3), labels(right), 2), 0.6);
  EXPECT_EQ(top_k(scores(five, 3), labels(right), 3), 0.6);
}

TEST(Classes, HaveSharesOfOne) {
  const std::vector<Guess> of_logits = guesses(scores(std::vector{1.0f, 3.0f, 2.0f}, 3), 3);
  const double sum = 1 + std::exp(-1.0) + std::exp(-2.0);
  ASSERT_EQ(of_logits.size(), 3U);
  EXPECT_EQ(of_logits[0].label, 1);
  EXPECT_NEAR(of_logits[0].share, 1 / sum, 1e-12);
  EXPECT_EQ(of_logits[2].label, 0);
  EXPECT_NEAR(of_logits[2].share, std::exp(-2.0) / sum, 1e-12);
  const std::vector<Guess> of_shares = guesses(scores(std::vector{0.25, 0.5, 0.25}, 3), 2);
  ASSERT_EQ(of_shares.size(), 2U);
  EXPECT_EQ(of_shares[0].share, 0.5);
  EXPECT_EQ(of_shares[1].label, 0);
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (const float most : {infinite, -infinite}) {
    const std::vector<Guess> found = guesses(scores(std::vector{most, nan, most, -infinite}, 4), 4);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(found[i].share >= 0 && found[i].share <= 1);
    EXPECT_EQ(found[3].label, 1);
    EXPECT_TRUE(std::isnan(found[3].share));
    EXPECT_EQ(found[0].share, most > 0 ? 0.5 : 1.0 / 3);
  }
  const std::vector<Guess> of_huge = guesses(scores(std::vector{1e300, nan + 0.0, 1e300}, 3), 3);
  EXPECT_EQ(of_huge[0].share, 0.5);
  EXPECT_EQ(of_huge[2].label, 1);
  EXPECT_TRUE(std::isnan(of_huge[2].share));
  for (const Guess& guess : guesses(scores(std::vector{nan, nan}, 2), 2))
    EXPECT_TRUE(std::isnan(guess.share));
}

TEST(Classes, RefuseWhatIsNone) {
  const std::vector<std::uint8_t> bytes{0, 3};
  const std::vector<float> reals{0, 1};
  const Predictions two = scores(std::vector{1.0f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f}, 3);
  EXPECT_ERROR("label 3; expected 0 to 2", static_cast<void>(confusion(two, labels(bytes))));
  EXPECT_ERROR("labels of type float32; expected integers",
               static_cast<void>(confusion(two, labels(reals))));
  EXPECT_ERROR("labels [5]; expected [2], one a sample",
               static_cast<void>(top_k(two, labels(right), 1)));
  Predictions cut = two;
  cut.bytes.pop_back();
  EXPECT_ERROR("23 bytes of predictions [2, 3]; expected 24", static_cast<void>(guesses(cut, 1)));
  EXPECT_ERROR("null for the bytes of column 'labels'; expected 16 bytes",
               static_cast<void>(confusion(two, {"labels", nullptr, DType::int64, {2}})));
  EXPECT_ERROR("4 of the classes; expected 1 to 3", static_cast<void>(guesses(two, 4)));
  EXPECT_ERROR("predictions int64 [2, 1]; expected scores of classes, real numbers [M, classes]",
               static_cast<void>(guesses(scores(std::vector<std::int64_t>{1, 2}, 1), 1)));
}

}  // namespace
}  // namespace arenite::train
