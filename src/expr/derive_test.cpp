#include <arenite/expr/builder.hpp>
#include <arenite/expr/derive.hpp>
#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "src/base/testing.hpp"
#include "src/expr/random_expression.hpp"

namespace arenite::expr {
namespace {

using arenite::testing::fewer_where_slow;
using Kind = GradientOperand::Kind;
using Payloads = std::vector<std::uint64_t>;

constexpr Type i32 = Type::int32, f32 = Type::float32, f64 = Type::float64;
constexpr std::array<std::int64_t, 8> place{3, 1, 4, 1, 5, 9, 2, 6};

std::vector<bool> all(std::size_t count) { return std::vector<bool>(count, true); }
std::vector<bool> none(std::size_t count) { return std::vector<bool>(count, false); }

std::optional<Gradient> derive_all(const Expression& expression) {
  return derive(expression, all(expression.results().size()), all(expression.operands().size()),
                none(expression.results().size()));
}

/// What a gradient's results are.
Payloads gradients(const Gradient& gradient, const Payloads& operands, const Payloads& results,
                   const Payloads& seeds) {
  Payloads given;
  for (const GradientOperand& operand : gradient.operands) {
    const Payloads& from = operand.kind == Kind::seed      ? seeds
                           : operand.kind == Kind::operand ? operands
                                                           : results;
    given.push_back(from[operand.number]);
  }
  return evaluate(gradient.expression, given, place);
}

/// Of formulas of float64.
double value_at(const Expression& expression, const std::vector<double>& at, std::size_t result) {
  Payloads payloads;
  for (const double x : at) payloads.push_back(payload_of(x));
  return value_of<double>(evaluate(expression, payloads, place)[result]);
}

/// By operand, of one seed a result; 0 where there is none.
std::vector<double> gradients_at(const Expression& expression, const std::vector<double>& at,
                                 const std::vector<double>& seeds) {
  std::vector<double> made(at.size(), 0);
  const auto gradient = derive_all(expression);
  if (!gradient) return made;
  Payloads operands, results, of_seeds;
  for (const double x : at) operands.push_back(payload_of(x));
  for (const double seed : seeds) of_seeds.push_back(payload_of(seed));
  const Payloads found = gradients(*gradient, operands, results, of_seeds);
  for (std::size_t i = 0; i < found.size(); ++i) made[gradient->of[i]] = value_of<double>(found[i]);
  return made;
}

/// Of a text for as many float64 as there are places.
std::vector<double> gradients_at(std::string_view text, const std::vector<double>& at) {
  return gradients_at(parse(text, std::vector(at.size(), f64)), at, {1});
}

/// What a gradient reads: r0 a result, s0 a seed, x0 an operand.
std::string reads(const Gradient& gradient) {
  std::vector<std::string> words;
  for (const GradientOperand& operand : gradient.operands) {
    const char kind = operand.kind == Kind::seed ? 's' : operand.kind == Kind::operand ? 'x' : 'r';
    words.push_back(kind + std::to_string(operand.number));
  }
  std::ranges::sort(words);
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// ---- Rules -------------------------------------------------------------------------------------

/// A function of float64; a select's first operand is a boolean.
Expression alone(const FunctionInfo& function) {
  Builder builder;
  std::vector<Term> sources;
  for (int i = 0; i < function.sources; ++i) {
    const bool chooses = function.function == Function::select && i == 0;
    sources.push_back(builder.operand(chooses ? Type::boolean : f64));
  }
  return builder.finish({builder.apply(function.function, sources)});
}

TEST(Derive, EveryFunctionAgreesWithDifferences) {
  constexpr double h = 1e-6, seed = 0.75;
  int functions = 0;
  for (const FunctionInfo& function : all_functions().first(function_count)) {
    if (function.sources == 0 || !takes(function, f64) || function.is(predicate) ||
        function.function == Function::cast || function.function == Function::bfloat16)
      continue;
    SCOPED_TRACE(std::string(function.name));
    const Expression expression = alone(function);
    int places = 0;
    for (const double first : {0.3, 1.7, -0.6, -2.2}) {
      std::vector<double> at{first, 0.8, 1.3};
      at.resize(expression.operands().size());
      const bool selects = function.function == Function::select;
      if (selects) at[0] = first > 0 ? value_of<double>(1) : 0;
      if (!std::isfinite(value_at(expression, at, 0))) continue;
      ++places;
      const std::vector<double> found = gradients_at(expression, at, {seed});
      for (std::size_t i = selects ? 1 : 0; i < at.size(); ++i) {
        std::vector<double> above = at, below = at;
        above[i] += h;
        below[i] -= h;
        const double wanted =
            seed * (value_at(expression, above, 0) - value_at(expression, below, 0)) / (2 * h);
        EXPECT_NEAR(found[i], wanted, 1e-8 * (1 + std::fabs(wanted))) << i << " at " << first;
      }
    }
    EXPECT_GE(places, 2);
    ++functions;
  }
  EXPECT_GE(functions, 24);
}

TEST(Derive, HasKinksWhereTorchHasThem) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using Numbers = std::vector<double>;
  EXPECT_EQ(gradients_at("abs($1)", {0}), Numbers{0});
  EXPECT_EQ(gradients_at("abs($1)", {-0.0}), Numbers{0});
  EXPECT_EQ(gradients_at("select($1 <= 0, 0, $1)", {0}), Numbers{0});
  EXPECT_EQ(gradients_at("select($1 <= 0, 0, $1)", {1e-300}), Numbers{1});
  EXPECT_EQ(gradients_at("max($1, 0)", {0}), Numbers{0.5});
  for (const std::string_view text : {"min($1, $2)", "max($1, $2)"}) {
    EXPECT_EQ(gradients_at(text, {2, 2}), (Numbers{0.5, 0.5})) << text;
    EXPECT_EQ(gradients_at(text, {nan, 2}), (Numbers{1, 1})) << text;
    EXPECT_EQ(gradients_at(text, {2, nan}), (Numbers{1, 1})) << text;
  }
  EXPECT_EQ(gradients_at("pow($1, $2)", {0, 0}), (Numbers{0, 0}));
  EXPECT_EQ(gradients_at("pow($1, $2)", {0, 2}), (Numbers{0, 0}));
  EXPECT_EQ(gradients_at("pow($1, 2)", {-3}), Numbers{-6});
  EXPECT_EQ(gradients_at("pow($1, 0)", {0}), Numbers{0});
}

TEST(Derive, CastsGradientsBack) {
  const auto gradient = derive_all(parse("$1 * float64($2)", std::vector{f64, f32}));
  ASSERT_TRUE(gradient);
  EXPECT_EQ(gradient->expression.result_type(0), f64);
  EXPECT_EQ(gradient->expression.result_type(1), f32);
  const auto narrow = derive_all(parse("bfloat16(bfloat16(3 * $1) + $2)", std::vector{f32, f32}));
  ASSERT_TRUE(narrow);
  EXPECT_EQ(print(narrow->expression), "yield $1 * 3, $1");
}

// ---- Several results and operands --------------------------------------------------------------

TEST(Derive, SumsOverResults) {
  const Expression expression =
      parse("yield $1 * $2, exp($1) + $3, $1", std::vector{f64, f64, f64});
  const std::vector<double> found = gradients_at(expression, {0.5, 3, 7}, {2, 10, 100});
  EXPECT_DOUBLE_EQ(found[0], 2 * 3 + 10 * std::exp(0.5) + 100);
  EXPECT_DOUBLE_EQ(found[1], 2 * 0.5);
  EXPECT_DOUBLE_EQ(found[2], 10);

  const auto second = derive(expression, {false, true, false}, all(3), none(3));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->of, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(reads(*second), "s1 x0");
  const auto wanted = derive(expression, all(3), {false, true, false}, none(3));
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->of, std::vector<std::size_t>{1});
  EXPECT_EQ(reads(*wanted), "s0 x0");
}

TEST(Derive, ComputesSharedPartsOnce) {
  const auto gradient = derive_all(parse("e = exp($1); yield e * e + e", std::vector{f64}));
  ASSERT_TRUE(gradient);
  const auto exps =
      std::ranges::count(gradient->expression.nodes(), Function::exp, &Node::function);
  EXPECT_EQ(exps, 1);
  EXPECT_DOUBLE_EQ(gradients_at("e = exp($1); yield e * e + e", {0.5})[0],
                   2 * std::exp(1.0) + std::exp(0.5));
}

TEST(Derive, StaysSmall) {
  const auto nodes = [](std::string_view text, bool at_hand) {
    const auto gradient = derive(parse(text, std::vector{f32}), {true}, {true}, {at_hand});
    return gradient ? gradient->expression.nodes().size() : 0;
  };
  EXPECT_LE(nodes("select($1 <= 0, 0, $1)", true), 5u);
  EXPECT_LE(nodes("sigmoid($1)", true), 6u);
  EXPECT_LE(nodes("$1 * sigmoid($1)", false), 10u);
  EXPECT_LE(nodes("$1 / (1 + exp(-$1))", false), 14u);
  EXPECT_LE(nodes("0.5 * $1 * (1 + erf($1 * 0.7071067811865476))", false), 20u);
}

TEST(Derive, GoesThroughDeepFormulas) {
  Builder builder;
  const Value first = builder.operand(f64);
  Value x = first;
  for (int i = 0; i < 10'000; ++i) x = i % 2 == 0 ? sin(x) : x * 1.5 + first;
  const Expression deep = builder.finish({x});
  const std::vector<double> found = gradients_at(deep, {0.3}, {1});
  const double h = 1e-6;
  const double wanted = (value_at(deep, {0.3 + h}, 0) - value_at(deep, {0.3 - h}, 0)) / (2 * h);
  EXPECT_NEAR(found[0], wanted, 1e-5 * std::fabs(wanted));
}

// ---- None --------------------------------------------------------------------------------------

TEST(Derive, IntegersHaveNone) {
  const auto gradient =
      derive_all(parse("$1 * float32($2) + float32(index(0))", std::vector{f32, i32}));
  ASSERT_TRUE(gradient);
  EXPECT_EQ(gradient->of, std::vector<std::size_t>{0});
  EXPECT_EQ(reads(*gradient), "s0 x1");
}

TEST(Derive, FindsNoneAtAll) {
  const Expression product = parse("$1 * $2", std::vector{f32, f32});
  EXPECT_FALSE(derive(product, {false}, all(2), none(1)));
  EXPECT_FALSE(derive(product, all(1), none(2), none(1)));
  EXPECT_FALSE(derive_all(parse("$1 * $1 + int32(index(0))", std::vector{i32})));
  for (const std::string_view text :
       {"floor($1)", "round(3 * $1)", "float32(int32($1))", "select($1 < 1, float32(2), 3)",
        "float32(bool($1))", "int32($1)", "uint8($1 == 0)"})
    EXPECT_FALSE(derive_all(parse(text, std::vector{f32}))) << text;
}

// ---- Of results --------------------------------------------------------------------------------

TEST(Derive, ReadsResultsAtHand) {
  const auto what_is_read = [](std::string_view text) {
    const std::vector types(operand_count(text), f32);
    const auto gradient = derive(parse(text, types), all(1), all(types.size()), all(1));
    return gradient ? reads(*gradient) : "";
  };
  for (const std::string_view text :
       {"tanh($1)", "sigmoid($1)", "exp($1)", "expm1($1)", "sqrt($1)", "rsqrt($1)",
        "select($1 <= 0, 0, $1)", "select($1 <= -1, -1, $1)"})
    EXPECT_EQ(what_is_read(text), "r0 s0") << text;
  EXPECT_EQ(what_is_read("select($1 + $2 <= 0, 0, $1 + $2)"), "r0 s0");
  EXPECT_EQ(what_is_read("$1 / $2"), "r0 s0 x1");
  EXPECT_EQ(what_is_read("sin($1)"), "s0 x0");
  EXPECT_EQ(what_is_read("$1"), "s0");
}

TEST(Derive, ResultsStandForTheirNodesEverywhere) {
  const Expression expression = parse("e = exp($1); yield e, e * $2 * $1", std::vector{f64, f64});
  const auto gradient = derive(expression, {false, true}, all(2), {true, false});
  ASSERT_TRUE(gradient);
  EXPECT_EQ(reads(*gradient), "r0 s1 x0 x1");
  for (const Node& node : gradient->expression.nodes()) EXPECT_NE(node.function, Function::exp);
  // What is an operand anyway is read as that.
  const auto product =
      derive(parse("yield $1, $1 * $2", std::vector{f64, f64}), {false, true}, all(2), all(2));
  ASSERT_TRUE(product);
  EXPECT_EQ(reads(*product), "s1 x0 x1");
}

// ---- Random formulas ---------------------------------------------------------------------------

/// Of float64, at places where most functions are smooth.
class RandomFormula {
 public:
  explicit RandomFormula(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) values_.push_back(builder_.operand(f64));
    for (int i = 0; i < 12; ++i) values_.push_back(node());
    formula_ = builder_.finish({values_.back(), any() + values_[0] * values_[1] * values_[2]});
    for (int i = 0; i < 3; ++i) at_.push_back(1 + static_cast<double>(pick(1000)) / 400);
  }

  /// How many differences there were to compare with.
  int compare() {
    int compared = 0;
    const std::vector<double> seeds{0.5, -1.5}, found = gradients_at(formula_, at_, seeds);
    // Differences of large numbers are rough.
    const Expression parts = builder_.finish(values_);
    for (std::size_t r = 0; r < values_.size(); ++r)
      if (!(std::fabs(value_at(parts, at_, r)) < 1e3)) return 0;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      const auto slope = [&](double from, double to) {
        std::vector<double> above = at_, below = at_;
        above[i] += to, below[i] += from;
        double difference = 0;
        for (std::size_t r = 0; r < seeds.size(); ++r)
          difference += seeds[r] * (value_at(formula_, above, r) - value_at(formula_, below, r));
        return difference / (to - from);
      };
      constexpr double h = 1e-6;
      const double middle = slope(-h, h), left = slope(-h, 0), right = slope(0, h);
      const double wide = slope(-2 * h, 2 * h);
      const double close = 1e-4 * (1 + std::fabs(middle));
      // Else there is a kink, or it is too steep; what is chained to a steep part may be NaN.
      if (!(std::fabs(left - right) < close / 10 && std::fabs(wide - middle) < close / 100))
        continue;
      if (!std::isfinite(found[i])) continue;
      ++compared;
      EXPECT_NEAR(found[i], middle, close) << "operand " << i;
    }
    return compared;
  }

  const Expression& formula() const { return formula_; }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  Value any() { return values_[pick(2) ? pick(values_.size()) : values_.size() - 1 - pick(3)]; }

  Value node() {
    while (true) {
      const FunctionInfo& function = info(static_cast<Function>(pick(function_count)));
      if (function.sources == 0 || !takes(function, f64) || function.is(predicate) ||
          function.function == Function::bfloat16 || function.function == Function::cast ||
          function.function == Function::floor || function.function == Function::round)
        continue;
      std::vector<Term> sources;
      for (int i = 0; i < function.sources; ++i) {
        const bool chooses = function.function == Function::select && i == 0;
        sources.push_back(chooses   ? Term(any() < any())
                          : pick(6) ? Term(any())
                                    : Term(any() * 0.7));
      }
      return builder_.apply(function.function, sources);
    }
  }

  std::mt19937_64 random_;
  Builder builder_;
  std::vector<Value> values_;
  Expression formula_;
  std::vector<double> at_;
};

TEST(Derive, RandomFormulasAgreeWithDifferences) {
  const unsigned cases = fewer_where_slow(2'000u);
  int compared = 0;
  for (unsigned seed = 0; seed < cases && !HasFailure(); ++seed) {
    RandomFormula formula(seed);
    SCOPED_TRACE(print(formula.formula()));
    compared += formula.compare();
  }
  EXPECT_GT(compared, static_cast<int>(cases / 4));
}

TEST(Derive, RandomExpressionsHaveTheSameGradientsOfResults) {
  const unsigned cases = fewer_where_slow(2'000u);
  unsigned derived = 0, shorter = 0;
  for (unsigned seed = 0; seed < cases && !HasFailure(); ++seed) {
    testing::RandomExpression random(seed);
    const Expression expression = random.make();
    SCOPED_TRACE(print(expression));
    std::mt19937 coins(seed);
    const auto toss = [&](std::size_t count) {
      std::vector<bool> tossed;
      while (tossed.size() < count) tossed.push_back(coins() % 4 != 0);
      return tossed;
    };
    const std::size_t results = expression.results().size();
    const auto seeded = toss(results), wanted = toss(expression.operands().size()),
               at_hand = toss(results);
    const auto plain = derive(expression, seeded, wanted, none(results));
    const auto gradient = derive(expression, seeded, wanted, at_hand);
    ASSERT_EQ(plain.has_value(), gradient.has_value());
    if (!plain) continue;
    ++derived;
    shorter += gradient->expression.nodes().size() < plain->expression.nodes().size();
    EXPECT_EQ(plain->of, gradient->of);
    Payloads operands, seeds;
    for (const Type type : expression.operands()) operands.push_back(random.payload(type));
    for (std::size_t i = 0; i < results; ++i)
      seeds.push_back(random.payload(expression.result_type(i)));
    const Payloads made = evaluate(expression, operands, place);
    const Payloads expected = gradients(*plain, operands, made, seeds),
                   found = gradients(*gradient, operands, made, seeds);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Type type = expression.operands()[gradient->of[i]];
      EXPECT_EQ(gradient->expression.result_type(i), type);
      EXPECT_TRUE(wanted[gradient->of[i]]);
      EXPECT_TRUE(testing::same_bits(type, found[i], expected[i]))
          << print(plain->expression) << "\n"
          << print(gradient->expression);
    }
    for (const GradientOperand& operand : gradient->operands) {
      EXPECT_TRUE(operand.kind != Kind::seed || seeded[operand.number]);
      EXPECT_TRUE(operand.kind != Kind::result || at_hand[operand.number]);
    }
  }
  EXPECT_GT(derived, cases / 8);
  EXPECT_GT(shorter, cases / 150);
}

}  // namespace
}  // namespace arenite::expr
