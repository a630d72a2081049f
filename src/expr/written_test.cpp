// Texts that read operands and numbers by their names, and the formulas that they are.
#include "src/expr/written.hpp"

#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/expr/take_out.hpp"

#include <vector>

namespace arenite::expr {
namespace {

using arenite::testing::error_of;

constexpr Type f32 = Type::float32, f64 = Type::float64;

Expression read(std::string_view text, const std::vector<Parameter>& parameters) {
  return parse_named(text, parameters);
}

std::string error(std::string_view text, const std::vector<Parameter>& parameters) {
  return error_of([&] { read(text, parameters); });
}

TEST(NamedParameters, AreOperandsAndNumbers) {
  EXPECT_EQ(read("y = beta * x; yield y + z", {{"x", f32}, {"z", f32}, {"beta", 0.5}}),
            parse("0.5 * $1 + $2", std::array{f32, f32}));
  EXPECT_EQ(read("x * (1 - beta)", {{"x", f32}, {"beta", 0.9}}),
            parse("$1 * (1 - 0.9)", std::array{f32}));
}

TEST(NamedParameters, MayBeNamedAsFunctions) {
  EXPECT_EQ(read("mean * mean(max)", {{"mean", f32}, {"max", f32}}),
            parse("$1 * mean($2)", std::array{f32, f32}));
}

TEST(NamedParameters, RoundWhatIsFloat64WhereItMeetsAFloat32) {
  EXPECT_EQ(read("x / (1 - pow(beta, step))", {{"x", f32}, {"step", f64}, {"beta", 0.999}}),
            parse("$1 / float32(1 - pow(0.999, $2))", std::array{f32, f64}));
  EXPECT_EQ(read("fma(x, step, 1)", {{"x", f32}, {"step", f64}}),
            parse("fma($1, float32($2), 1)", std::array{f32, f64}));
}

TEST(NamedParameters, RoundNothingElse) {
  EXPECT_EQ(
      error("float64(x) * x", {{"x", f32}}),
      "expression:1:12: argument 2 of type float32 in '*'; expected float64, as the others (hint: "
      "float64(…) casts)");
}

TEST(NamedParameters, OfFloat64WidenAFloat32) {
  EXPECT_EQ(read("x * float32(0.1)", {{"x", f64}}),
            parse("$1 * float64(float32(0.1))", std::array{f64}));
  EXPECT_EQ(read("x / sum(x) * float32(count())", {{"x", f64}}),
            parse("$1 / sum($1) * float64(float32(count()))", std::array{f64}));
}

TEST(NamedParameters, AreNumbersOfFunctions) {
  EXPECT_EQ(read("x * sqrt(beta) + pow(beta, 2)", {{"x", f32}, {"beta", 4.0}}),
            parse("$1 * 2 + 16", std::array{f32}));
  EXPECT_EQ(read("select(beta > 1, x, -x)", {{"x", f32}, {"beta", 4.0}}),
            parse("yield $1", std::array{f32}));
  EXPECT_EQ(read("x * select(beta > 1, beta, 1 / beta)", {{"x", f32}, {"beta", 4.0}}),
            parse("$1 * 4", std::array{f32}));
}

TEST(NamedParameters, AreAllRead) {
  EXPECT_EQ(error("x + 1", {{"x", f32}, {"beta", 1.0}}),
            "expression:1:1: a formula that does not read 'beta'; expected one that reads all its "
            "parameters");
  EXPECT_EQ(error("x + bata", {{"x", f32}, {"beta", 1.0}}),
            "expression:1:5: unknown name 'bata'; expected a name defined above (hint: did you "
            "mean 'beta'?)");
}

TEST(NamedParameters, HaveNamesOfTheirOwn) {
  EXPECT_EQ(error("x + 1", {{"x", f32}, {"x", 1.0}}),
            "a second parameter 'x'; expected a name of its own, of letters, digits and '_'");
  for (const std::string name : {"yield", "nan", "a b", "a.b", "", "1", "$1"}) {
    EXPECT_EQ(
        error("x + 1", {{"x", f32}, {name, 1.0}}),
        "a parameter named '" + name + "'; expected a name of its own, of letters, digits and '_'");
  }
  EXPECT_EQ(error("x = 1; yield x", {{"x", f32}}),
            "expression:1:1: a second definition of 'x'; expected a name of its own (hint: it is a "
            "parameter)");
}

TEST(TakeOut, PartsWhatIsOfOneOperandAlone) {
  const Expression whole =
      parse("select($2 <= 1, $1, $1 * float32(0.5 / $2)) + float32($2)", std::array{f32, f64});
  const TakenOut parts = take_out(whole, 1);
  EXPECT_EQ(parts.once.operands().size(), 1U);
  EXPECT_EQ(parts.once.results().size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(parts.once.result_type(i), f32);
  EXPECT_EQ(parts.rest.operands().size(), 4U);
  // Put together again.
  Builder builder;
  const Value x = builder.operand(f32), step = builder.operand(f64);
  std::vector<Value> operands{x};
  for (const Value once : builder.insert(parts.once, std::array{step})) operands.push_back(once);
  const Value again = builder.insert(parts.rest, operands).front();
  EXPECT_EQ(again.type(), f32);
  EXPECT_EQ(error_of([] {
              take_out(parse("yield $1, float32($2)", std::array{f32, f64}), 1);
            }),
            "result 2, which is the same for all elements; expected one that is made of them");
}

const std::vector<std::string> adam_operands{"w", "gradient", "learning_rate", "m", "s", "step"};
constexpr const char* adam =
    "a = beta1 * m + (1 - beta1) * gradient; b = beta2 * s + (1 - beta2) * gradient * gradient;"
    "yield w - learning_rate * a / (1 - pow(beta1, step)) / sqrt(b / (1 - pow(beta2, step))), a, b";

TEST(Written, OptimizersComputeOnceAStepWhatTheStepAloneDecides) {
  const auto made = written("mine", adam_operands, {{"beta1", 0.9}, {"beta2", 0.999}}, adam);
  EXPECT_TRUE(made->is_optimizer);
  EXPECT_FALSE(made->is_operator);
  ASSERT_TRUE(made->each_step);
  ASSERT_GT(made->operands.size(), 7U);
  EXPECT_EQ(made->operands[6], "step_2");
  EXPECT_EQ(made->standard(f32).operands().size(), 7U);
  const std::vector<double> same{0.5, 0.5};
  const Expression step = made->each_step->with(f64, same);
  EXPECT_EQ(step, parse("float32(1 - pow(0.5, $1))", std::array{f64}));
  const Expression rest = made->with(f32, same);
  EXPECT_EQ(rest.operands().size(), 6U);
}

/// And so has its loop.
TEST(Written, IsTheLineOfTheTableThatItSays) {
  const auto made =
      written("heavy_ball", {"w", "gradient", "learning_rate", "velocity"}, {{"momentum", 0.5}},
              "v = fma(momentum, velocity, gradient);"
              "yield fma(-learning_rate, v, w), v");
  const auto found = find_formula(made->standard(f32));
  ASSERT_TRUE(found);
  EXPECT_EQ(formulas()[found->formula].name, "sgd_momentum");
}

/// Where they are the same unless said, there is room for both.
TEST(Written, OptimizersHaveRoomForNumbersThatDiffer) {
  const auto made = written("mine", adam_operands, {{"beta1", 0.9}, {"beta2", 0.9}}, adam);
  EXPECT_EQ(made->standard(f32).operands().size(), 6U);
  const std::vector<double> others{0.9, 0.8};
  const Expression rest = made->with(f32, others);
  EXPECT_EQ(rest.operands().size(), 7U);
  EXPECT_GE(made->operands.size(), 7U);
}

TEST(Written, IsAnOperatorOtherwise) {
  const auto swish = written("swish", {"x"}, {{"beta", 1}}, "x * sigmoid(beta * x)");
  EXPECT_TRUE(swish->is_operator);
  EXPECT_FALSE(swish->is_of_rows);
  EXPECT_EQ(swish->standard(f64), parse("$1 * sigmoid($1)", std::array{f64}));
  EXPECT_TRUE(written("centered", {"x"}, {}, "x - mean(x)")->is_of_rows);
}

TEST(Written, SaysWhatIsWrong) {
  const auto error = [](std::vector<std::string> operands, const char* text) {
    return error_of([&] { written("mine", std::move(operands), {}, text); });
  };
  EXPECT_EQ(error({"w", "gradient", "learning_rate", "v"}, "w - learning_rate * gradient * v"),
            "1 results of optimizer 'mine'; expected 2, the next weight and states (hint: operands "
            "behind learning_rate are states, but for a last one named 'step')");
  EXPECT_EQ(error({"w", "gradient", "learning_rate"}, "int32(w - learning_rate * gradient)"),
            "result 1 of type int32; expected float32, as the weight has it");
  EXPECT_EQ(error({"x"}, "sum(x)"),
            "a result that is one for a row; expected one of each element (hint: `reduce` makes "
            "others: reduce($1, axes=[1]) { … })");
  EXPECT_EQ(error({"x", "y"}, "x + 1"),
            "expression:1:1: a formula that does not read 'y'; expected one that reads all its "
            "parameters");
  EXPECT_EQ(error({"x", "y"}, "select(1 > 2, y, x)"),
            "expression:1:1: 'y', which no result needs; expected operands that some result needs");
}

}  // namespace
}  // namespace arenite::expr
