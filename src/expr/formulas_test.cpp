// The formulas of formulas.def: that those of gradients are what they say, and that loops of whole
// formulas make the bits that the scalar evaluator makes.
#include "src/expr/formulas.hpp"

#include <arenite/expr/derive.hpp>
#include <arenite/expr/text.hpp>

#include <gtest/gtest.h>

#include "src/expr/simd/fused.hpp"

#include <set>

namespace arenite::expr {
namespace {

const Formula& named(const std::string& name) {
  for (const Formula& one : formulas()) {
    if (one.name == name) return one;
  }
  throw std::logic_error(name);
}

TEST(Formulas, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Formula& one : formulas()) EXPECT_TRUE(names.insert(one.name).second) << one.name;
  EXPECT_EQ(find_formula("gelu"), &named("gelu"));
  EXPECT_EQ(find_formula("gelo"), nullptr);
}

TEST(Formulas, HaveOperandsAndNumbers) {
  const Formula& huber = named("huber");
  EXPECT_EQ(huber.operands, (std::vector<std::string>{"x", "target"}));
  ASSERT_EQ(huber.numbers.size(), 1U);
  EXPECT_EQ(huber.numbers[0].name, "delta");
  EXPECT_EQ(huber.numbers[0].standard, 1);
  EXPECT_EQ(print(huber.make(Type::float64, std::vector{0.5})),
            "a = abs($1 - $2); b = min(a, 0.5); yield b * (a - b * 0.5)");
  EXPECT_EQ(huber.numbers[0].range, Formula::Number::Range::positive);
}

TEST(Formulas, AreFoundWithTheirNumbers) {
  const Formula& huber = named("huber");
  for (const double delta : {1.0, 0.5, 3.0, 0.1}) {
    const auto found = find_formula(huber.make(Type::float32, std::vector{delta}));
    ASSERT_TRUE(found) << delta;
    EXPECT_EQ(&formulas()[found->formula], &huber);
    EXPECT_EQ(found->numbers, std::vector{delta});
  }
  const std::vector<double> of_adam{0.01, 0.8, 0.99, 1e-6};
  const auto adam = find_formula(named("adam").make(Type::float32, of_adam));
  ASSERT_TRUE(adam);
  EXPECT_EQ(adam->numbers, of_adam);
  for (const double decay : {0.0, 0.01, 0.9}) {
    const auto sgd =
        find_formula(named("sgd_momentum").make(Type::float32, std::vector{0.9, decay}));
    ASSERT_TRUE(sgd) << decay;
    EXPECT_EQ(sgd->numbers, (std::vector{0.9, decay}));
  }
  EXPECT_FALSE(find_formula(parse("a = abs($1 - $2); b = min(a, 0.5); yield b * (a - b * 0.25)",
                                  std::vector{Type::float32, Type::float32})));
}

/// What maps append, so that they find its loop.
TEST(Formulas, OfGradientsFollowFromTheOthers) {
  int compared = 0;
  for (const Formula& gradient : formulas()) {
    const std::size_t end = gradient.name.find("_grad");
    if (gradient.is_operator || gradient.is_of_rows || end == std::string_view::npos) continue;
    const Expression formula =
        named(std::string(gradient.name.substr(0, end))).standard(Type::float32);
    std::vector wanted(formula.operands().size(), false);
    wanted[0] = true;
    const auto derived = derive(formula, {true}, wanted, {true});
    ASSERT_TRUE(derived);
    EXPECT_EQ(gradient.standard(Type::float32), derived->expression)
        << gradient.name << ": " << print(gradient.standard(Type::float32)) << "\nfollows as "
        << print(derived->expression);
    EXPECT_TRUE(find_fused(derived->expression));
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST(Formulas, HaveSeveralResults) {
  EXPECT_EQ(print(named("sgd_momentum").make(Type::float32, std::vector{0.5, 0.0})),
            "a = fma($4, 0.5, $2); yield fma(-$3, a, $1), a");
  EXPECT_EQ(named("adam").standard(Type::float64).results().size(), 3U);
}

TEST(Formulas, AreFoundByWhatTheyCompute) {
  const std::vector one{Type::float32};
  EXPECT_TRUE(find_fused(parse("sigmoid($1) * $1", one)));
  EXPECT_FALSE(find_fused(parse("sigmoid($1) * $1", std::vector{Type::float64})));
  EXPECT_FALSE(find_fused(parse("sigmoid($1) + $1", one)));
  const std::vector two{Type::float32, Type::float32};
  EXPECT_TRUE(find_fused(parse("silu = $1 * sigmoid($1); yield silu * $2", two)));
  EXPECT_TRUE(find_fused(parse("x = $1 + $2; yield select(x <= 0, 0, x)", two)));
}

}  // namespace
}  // namespace arenite::expr
