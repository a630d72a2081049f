// Expressions that make one value of all elements of a group.
#include <arenite/error.hpp>
#include <arenite/expr/builder.hpp>
#include <arenite/expr/derive.hpp>
#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "src/expr/scalar.hpp"

namespace arenite::expr {
namespace {

constexpr Type f64 = Type::float64;
using Elements = std::vector<std::vector<double>>;  // by element, then by operand or result

std::vector<std::vector<std::uint64_t>> payloads(const Elements& all) {
  std::vector<std::vector<std::uint64_t>> made;
  for (const auto& element : all) {
    made.emplace_back();
    for (const double one : element) made.back().push_back(payload_of(one));
  }
  return made;
}

Elements values(const Expression& expression, const Elements& operands) {
  Elements made;
  for (const auto& element : evaluate_group(expression, payloads(operands))) {
    made.emplace_back();
    for (const std::uint64_t one : element) made.back().push_back(value_of<double>(one));
  }
  return made;
}

/// The first result, by element.
std::vector<double> of(std::string_view text, const std::vector<double>& elements) {
  Elements operands;
  for (const double one : elements) operands.push_back({one});
  std::vector<double> made;
  for (const auto& element : values(parse(text, std::vector{f64}), operands))
    made.push_back(element[0]);
  return made;
}

TEST(Reductions, AreReadAndPrinted) {
  const std::vector two(2, f64);
  for (const char* text :
       {"yield sum($1)", "a = exp($1 - max($1)); yield a / sum(a)", "yield prod($1) - min($1, $2)",
        "yield float64(count() * argmin($1) + argmax($1))",
        "yield select(any($1 < 0), $1, select(all($1 == 0), 2, $1 * 3))"}) {
    const std::vector operands(operand_count(text), f64);
    EXPECT_EQ(print(parse(text, operands)), text);
  }
  EXPECT_EQ(print(parse("mean($1)", std::vector{f64})), "yield sum($1) / float64(count())");
  EXPECT_EQ(print(parse("variance($1)", std::vector{f64})),
            "a = float64(count()); b = $1 - sum($1) / a; yield sum(b * b) / a");
  EXPECT_TRUE(parse("sum($1)", std::vector{f64}).reduces());
  EXPECT_FALSE(parse("max($1, $2)", two).reduces());
}

TEST(Reductions, RefuseWhatDoesNotMatch) {
  const auto error = [](std::string_view text) -> std::string {
    try {
      parse(text, std::vector{f64});
    } catch (const Error& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_EQ(error("mean(2) + $1"),
            "expression:1:1: a number alone in 'mean'; expected a value that differs by element");
  EXPECT_EQ(error("sum($1, $1)"), "expression:1:1: 2 arguments in 'sum'; expected 1");
  EXPECT_EQ(error("variance($1, 2)"), "expression:1:1: 2 arguments of 'variance'; expected 1");
  EXPECT_EQ(error("$1 * count($1)"), "expression:1:6: 1 arguments of 'count'; expected 0");
  EXPECT_EQ(error("varience($1)"),
            "expression:1:1: unknown function 'varience'; expected a function, or a type to cast "
            "to (hint: did you mean 'variance'?)");
}

TEST(Reductions, MakeOneOfAGroup) {
  const std::vector<double> x{3, -1, 4, -1, 5};
  const auto one = [&](std::string_view text) {
    const auto made = of(text, x);
    EXPECT_EQ(made, std::vector(x.size(), made[0])) << text;
    return made[0];
  };
  EXPECT_EQ(one("sum($1)"), 10);
  EXPECT_EQ(one("prod($1)"), 60);
  EXPECT_EQ(one("min($1)"), -1);
  EXPECT_EQ(one("max($1)"), 5);
  EXPECT_EQ(one("float64(argmin($1))"), 1);
  EXPECT_EQ(one("float64(argmax($1))"), 4);
  EXPECT_EQ(one("select(any($1 > 4), float64(count()), 0) + sum(0 * $1)"), 5);
  EXPECT_EQ(one("select(all($1 > 4), sum($1), 7)"), 7);
  EXPECT_EQ(one("mean($1)"), 2);
  EXPECT_EQ(one("variance($1)"), 6.4);
  EXPECT_NEAR(one("logsumexp($1)"), 5.4109, 1e-4);
  EXPECT_EQ(of("$1 - mean($1)", x), (std::vector<double>{1, -3, 2, -3, 3}));
}

TEST(Reductions, KnowNaNAndInfinity) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const char* text : {"sum($1)", "prod($1)", "min($1)", "max($1)", "logsumexp($1)"})
    EXPECT_TRUE(std::isnan(of(text, {1, nan, 2})[0])) << text;
  for (const char* text : {"float64(argmin($1))", "float64(argmax($1))"})
    EXPECT_EQ(of(text, {1, nan, 2, nan})[0], 1) << text;
  EXPECT_EQ(of("logsumexp($1)", {inf, 1})[0], inf);
  EXPECT_EQ(of("logsumexp($1)", {-inf, -inf})[0], -inf);
  EXPECT_EQ(of("logsumexp($1)", {1000, 1000})[0], 1000 + std::log(2.0));
  EXPECT_TRUE(std::signbit(of("min($1)", {0.0, -0.0})[0]));
}

/// Σ seed · result, a result that is one for the group once.
double total(const Expression& expression, const Elements& operands, const Elements& seeds) {
  const auto varies = expression.varying();
  const Elements made = values(expression, operands);
  double sum = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    for (std::size_t r = 0; r < made[i].size(); ++r) {
      if (i == 0 || varies[expression.results()[r]]) sum += made[i][r] * seeds[i][r];
    }
  }
  return sum;
}

void check_gradient(std::string_view text, std::size_t group, std::mt19937& random) {
  SCOPED_TRACE(std::string(text) + " of " + std::to_string(group));
  std::uniform_real_distribution<double> number(0.5, 2);
  const std::size_t count = operand_count(text);
  const Expression expression = parse(text, std::vector(count, f64));
  const auto varies = expression.varying();
  Elements operands(group), seeds(group);
  for (std::size_t i = 0; i < group; ++i) {
    for (std::size_t k = 0; k < count; ++k) operands[i].push_back(number(random));
    for (const NodeId result : expression.results()) {
      const std::size_t r = seeds[i].size();
      seeds[i].push_back(i > 0 && !varies[result] ? seeds[0][r] : number(random));
    }
  }
  const Elements results = values(expression, operands);
  const std::vector<bool> all(8, true);
  for (const bool at_hand : {false, true}) {
    const auto gradient =
        derive(expression, std::vector(expression.results().size(), true), std::vector(count, true),
               std::vector(expression.results().size(), at_hand), static_cast<std::int64_t>(group));
    ASSERT_TRUE(gradient);
    Elements given(group);
    for (std::size_t i = 0; i < group; ++i) {
      for (const GradientOperand& one : gradient->operands) {
        using Kind = GradientOperand::Kind;
        const Elements& from = one.kind == Kind::seed      ? seeds
                               : one.kind == Kind::operand ? operands
                                                           : results;
        given[i].push_back(from[i][one.number]);
      }
    }
    const Elements found = values(gradient->expression, given);
    constexpr double step = 1e-6;
    for (std::size_t i = 0; i < group; ++i) {
      for (std::size_t k = 0; k < gradient->of.size(); ++k) {
        Elements more = operands, less = operands;
        more[i][gradient->of[k]] += step;
        less[i][gradient->of[k]] -= step;
        const double slope =
            (total(expression, more, seeds) - total(expression, less, seeds)) / (2 * step);
        EXPECT_NEAR(found[i][k], slope, 1e-6 * (1 + std::fabs(slope)));
      }
    }
  }
}

TEST(Reductions, GradientsAgreeWithDifferences) {
  std::mt19937 random(3);
  for (const char* text : {"sum($1)",
                           "sum($1 * $2)",
                           "$1 * sum($2)",
                           "mean($1 * $1) * $1",
                           "variance($1)",
                           "($1 - mean($1)) * rsqrt(variance($1) + 1e-5) * $2",
                           "max($1)",
                           "min($1 * $2) + $1",
                           "prod($1)",
                           "logsumexp($1)",
                           "a = exp($1 - max($1)); yield a / sum(a)",
                           "m = mean($1); yield m, $1 * m, variance($1)",
                           "sum(sum($1) * $1)",
                           "a = sum($1); yield a * a + 0 * sum($2 * a)",
                           "sum($1 + max($2))",
                           "sum(sum($1))",
                           "b = sum($1); yield sqrt(sum($1 * $1)) / b + sum(b * b)",
                           "max(sum($1 * $1) + 0 * $2)",
                           "prod(sum($1)) + 0 * $2",
                           "$1 * float64(count())"}) {
    for (const std::size_t group : {1, 2, 5}) check_gradient(text, group, random);
  }
}

TEST(Reductions, EqualElementsShareTheGradient) {
  const Expression expression = parse("max($1)", std::vector{f64});
  const auto gradient = derive(expression, {true}, {true}, {false}, 4);
  ASSERT_TRUE(gradient);
  Elements given;
  for (const double x : {2.0, 5.0, 5.0, 1.0}) {
    given.emplace_back();
    for (const GradientOperand& one : gradient->operands)
      given.back().push_back(one.kind == GradientOperand::Kind::seed ? 3.0 : x);
  }
  EXPECT_EQ(values(gradient->expression, given), (Elements{{0}, {1.5}, {1.5}, {0}}));
}

TEST(Reductions, OfAProductWithZeros) {
  const Expression expression = parse("prod($1)", std::vector{f64});
  const auto gradient = derive(expression, {true}, {true}, {false}, 3);
  ASSERT_TRUE(gradient);
  const auto found = [&](std::vector<double> x) {
    Elements given;
    for (const double one : x) {
      given.emplace_back();
      for (const GradientOperand& operand : gradient->operands)
        given.back().push_back(operand.kind == GradientOperand::Kind::seed ? 1.0 : one);
    }
    std::vector<double> made;
    for (const auto& element : values(gradient->expression, given)) made.push_back(element[0]);
    return made;
  };
  EXPECT_EQ(found({2, 3, 5}), (std::vector<double>{15, 10, 6}));
  EXPECT_EQ(found({2, 0, 5}), (std::vector<double>{0, 10, 0}));
  EXPECT_EQ(found({0, 0, 5}), (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace arenite::expr
