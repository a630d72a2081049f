#include "codelets/pairwise_testing.hpp"

namespace arenite::codelets::testing {
namespace {

const Pairwise sum{"add", [](double a, double b) { return a + b; },
                   [](double, double) { return 1.0; }, [](double, double) { return 1.0; }};

TEST(Add, RepeatsItsRightOperandAlongAnyAxes) { check_every_shape(sum); }

TEST(Add, GradientAgreesWithCentralDifferences) { check_against_differences(sum); }

TEST(Add, RefusesWhatDoesNotMatch) { check_refusals("add"); }

TEST(Add, GradientIsTheSumsOwnUnlessRepeated) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), b = h.random("b", {2, 3}), row = h.random("row", {1, 3}),
             g = h.random("g", {2, 3});
  h.op("add", {a, b});
  const std::size_t ops = h.graph().op_count();
  const auto same = h.gradient({g}, {true, true});
  EXPECT_EQ(same[0], g);
  EXPECT_EQ(same[1], g);
  EXPECT_EQ(h.graph().op_count(), ops);
  h.op("add", {a, row});
  const auto repeated = h.gradient({g}, {true, false});
  EXPECT_EQ(repeated[0], g);
  EXPECT_FALSE(repeated[1]);
  EXPECT_FALSE(h.gradient({ValueId{}}, {true, true})[1]);
  EXPECT_EQ(h.graph().op_count(), ops + 1);
}

TEST(Add, AValueMayBeItsOwnPartner) {
  OpHarness h;
  const auto x = h.random("x", {100});
  const auto before = h.read<float>(x);
  const auto y = h.op("add", {x, x}).front();
  h.run("plain");
  const auto after = h.read<float>(y);
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_EQ(after[i], 2 * before[i]);
}

}  // namespace
}  // namespace arenite::codelets::testing
