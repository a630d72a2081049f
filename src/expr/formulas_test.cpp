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
  EXPECT_TRUE(huber.numbers[0].is_positive);
}

/// What maps append, so that they find its loop.
TEST(Formulas, OfGradientsFollowFromTheOthers) {
  int compared = 0;
  for (const Formula& gradient : formulas()) {
    const std::size_t end = gradient.name.find("_grad");
    if (gradient.is_operator || end == std::string_view::npos) continue;
    const Expression formula =
        named(std::string(gradient.name.substr(0, end))).standard(Type::float32);
    const auto derived =
        derive(formula, {true}, std::vector(formula.operands().size(), true), {true});
    ASSERT_TRUE(derived);
    EXPECT_EQ(gradient.standard(Type::float32), derived->expression)
        << gradient.name << ": " << print(gradient.standard(Type::float32)) << "\nfollows as "
        << print(derived->expression);
    EXPECT_NE(find_fused(derived->expression), nullptr);
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

TEST(Formulas, AreFoundByWhatTheyCompute) {
  const std::vector one{Type::float32};
  EXPECT_NE(find_fused(parse("sigmoid($1) * $1", one)), nullptr);
  EXPECT_EQ(find_fused(parse("sigmoid($1) * $1", std::vector{Type::float64})), nullptr);
  EXPECT_EQ(find_fused(parse("sigmoid($1) + $1", one)), nullptr);
}

}  // namespace
}  // namespace arenite::expr
