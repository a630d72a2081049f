// How what persists begins: the numbers themselves, and what scripts say of them.
#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

constexpr std::size_t many = 100'000;

template <class T = float>
std::vector<T> filled(const FirstValue& first, std::size_t count = many, std::uint64_t seed = 1,
                      std::uint32_t stream = 0) {
  std::vector<T> values(count);
  fill(std::as_writable_bytes(std::span(values)), dtype_of<T>, first, seed, stream);
  return values;
}

template <class T>
std::pair<double, double> mean_and_deviation(const std::vector<T>& values) {
  double sum = 0, squares = 0;
  for (const T value : values) sum += static_cast<double>(value);
  const double mean = sum / static_cast<double>(values.size());
  for (const T value : values) squares += std::pow(static_cast<double>(value) - mean, 2);
  return {mean, std::sqrt(squares / static_cast<double>(values.size()))};
}

/// Of this mean and deviation, within four standard errors.
template <class T>
void expect_moments(const FirstValue& first, double mean, double deviation) {
  const auto [found_mean, found_deviation] = mean_and_deviation(filled<T>(first));
  const double error = deviation / std::sqrt(static_cast<double>(many));
  EXPECT_NEAR(found_mean, mean, 4 * error) << to_string(first);
  EXPECT_NEAR(found_deviation, deviation, 4 * error) << to_string(first);
}

TEST(FirstValue, HasTheMomentsOfItsDistribution) {
  expect_moments<float>(uniform(-1, 3), 1, 4 / std::sqrt(12.0));
  expect_moments<double>(uniform(-1, 3), 1, 4 / std::sqrt(12.0));
  expect_moments<float>(normal(5, 2), 5, 2);
  expect_moments<double>(normal(-1, 0.5), -1, 0.5);
  // 1 − 4φ(2) / (Φ(2) − Φ(−2)) is what is left of a variance of 1.
  expect_moments<float>(truncated_normal(1, 2), 1, 2 * std::sqrt(0.7737413));
}

TEST(FirstValue, StaysWithinItsBounds) {
  for (const float value : filled(uniform(-1, 3))) {
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 3);
  }
  for (const float value : filled(truncated_normal(1, 2))) {
    ASSERT_GE(value, -3);
    ASSERT_LE(value, 5);
  }
  const auto normals = filled<double>(normal(0, 1));
  // 2 · (1 − Φ(3)) of them are farther out.
  const auto far = std::ranges::count_if(normals, [](double v) { return std::abs(v) > 3; });
  EXPECT_NEAR(static_cast<double>(far) / many, 0.0027, 0.0007);
  EXPECT_EQ(filled<std::int64_t>(constant(-7), 3), (std::vector<std::int64_t>{-7, -7, -7}));
  EXPECT_EQ(filled<std::uint8_t>(constant(255), 1), std::vector<std::uint8_t>{255});
  EXPECT_EQ(filled(normal(2, 0), 2), (std::vector<float>{2, 2}));
}

TEST(FirstValue, DependsOnSeedAndStreamAlone) {
  for (const FirstValue& first : {uniform(0, 1), normal(0, 1), truncated_normal(0, 1)}) {
    const auto some = filled(first, 100), all = filled(first, 200);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << to_string(first);
    EXPECT_NE(some, filled(first, 100, 2));
    EXPECT_NE(some, filled(first, 100, 1, 1));
    FirstValue seeded = first;
    seeded.seed = 1;
    EXPECT_EQ(filled(seeded, 100, 2), some);
  }
}

TEST(FirstValue, ScriptsSayItAndPrintIt) {
  const std::string text = R"($1 = InputTensor(x, float32, [4, 3]);
$2 = ParameterTensor(a, float32, [3], uniform(-0.5, 0.5));
$3 = ParameterTensor(b, float32, [3], normal(0.0, 0.02, seed=7), frozen);
$4 = ParameterTensor(c, float32, [3], frozen);
$5 = StateTensor(d, float32, [3], truncated_normal(0.0, 1.0, seed=0));
$6 = BufferTensor(e, int64, [3], constant(12.0));
$7 = BufferTensor(f, float32, [3]);
result = $1;
)";
  const Graph graph = parse(text, operators());
  EXPECT_EQ(print(graph), text);
  EXPECT_EQ(graph[graph.find("b")].first, normal(0, 0.02, 7));
  EXPECT_EQ(graph.trainable(), std::vector{graph.find("a")});
  const Graph zeros = parse("$1 = BufferTensor(float32, [2], zeros); result = $1;", operators());
  EXPECT_TRUE(zeros[zeros.outputs[0]].first.is_zero());
  std::string why;
  const auto differs = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    EXPECT_FALSE(equal(graph, parse(other, operators()), &why));
    return why;
  };
  EXPECT_EQ(differs("seed=7", "seed=8"),
            "value 'b': normal(0.0, 0.02, seed=7) against normal(0.0, 0.02, seed=8)");
  EXPECT_EQ(differs(", frozen", ""), "value 'b': frozen against not frozen");
}

TEST(FirstValue, RefusesWhatItsTypeCannotBeginWith) {
  const auto said = [](const FirstValue& first, DType type) {
    return error_of([&] { check(first, type); });
  };
  EXPECT_EQ(
      said(uniform(0, 1), DType::int64),
      "a first value uniform(0.0, 1.0) of int64; expected constant(…), for random numbers are "
      "float32 or float64");
  EXPECT_EQ(said(uniform(1, 0), DType::float32),
            "a first value uniform(1.0, 0.0) of float32; expected the lower number first");
  EXPECT_EQ(said(normal(0, -1), DType::float64),
            "a first value normal(0.0, -1.0) of float64; expected a standard deviation of at least "
            "0");
  for (const auto& [number, type] : {std::pair{1e300, DType::float32},
                                     {0.5, DType::int32},
                                     {256.0, DType::uint8},
                                     {-1.0, DType::uint8},
                                     {0x1p63, DType::int64},
                                     {std::nan(""), DType::float64}})
    EXPECT_NE(said(constant(number), type), "(no error)") << number;
  EXPECT_EQ(said(constant(-0x1p53), DType::int64), "(no error)");
  EXPECT_NE(said(constant(0x1p54), DType::int64), "(no error)");
  EXPECT_NE(said(uniform(-3e38, 3e38), DType::float32), "(no error)");
  EXPECT_NE(said(normal(0, 1e308), DType::float64), "(no error)");
}

}  // namespace
}  // namespace arenite::graph
