// Operators that are formulas: what they append, refuse, and are as well.
#include "codelets/map/map.hpp"
#include "codelets/testing.hpp"

#include <limits>

namespace arenite::codelets::testing {
namespace {

std::vector<std::string> ops_of(OpHarness& h) {
  std::vector<std::string> names;
  const graph::Graph& graph = h.graph();
  for (const graph::OpId id : graph[graph::Graph::body].ops) names.emplace_back(graph[id].name());
  return names;
}

TEST(Add, GradientIsTheSumsOwnUnlessRepeated) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), b = h.random("b", {2, 3}), row = h.random("row", {3}),
             g = h.random("g", {2, 3});
  h.op("add", {a, b});
  const auto same = h.gradient({g}, {true, true});
  EXPECT_EQ(same, (std::vector<ValueId>{g, g}));
  h.op("add", {a, row});
  const auto repeated = h.gradient({g}, {true, false});
  EXPECT_EQ(repeated[0], g);
  EXPECT_FALSE(repeated[1]);
  EXPECT_FALSE(h.gradient({ValueId{}}, {true, true})[1]);
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"add", "add"}));
  EXPECT_EQ(h.graph()[h.gradient({g}, {false, true})[1]].shape, Shape({3}));
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"add", "add", "bias_grad"}));
}

TEST(Mul, BuildsOnlyWantedGradients) {
  OpHarness h;
  const auto a = h.random("a", {2, 3}), row = h.random("row", {1, 3}), g = h.random("g", {2, 3});
  h.op("mul", {a, row});
  EXPECT_FALSE(h.gradient({ValueId{}}, {true, true})[0]);
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"mul"}));
  EXPECT_FALSE(h.gradient({g}, {true, false})[1]);
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"mul", "mul"}));
  EXPECT_FALSE(h.gradient({g}, {false, true})[0]);
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"mul", "mul", "reduce"}));
}

/// They have nothing in common, and one may be gone before the other is made.
TEST(Mul, HasEachGradientOfAnOpOfItsOwn) {
  OpHarness h;
  const auto x = h.random("x", {50}), g = h.random("g", {50});
  const auto y = h.op("mul", {x, x}).front();
  h.run("tiles");
  const auto values = h.read<float>(x), squares = h.read<float>(y);
  const auto gradients = h.gradient({g}, {true, true});
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"mul", "mul", "mul"}));
  const auto weights = h.read<float>(g), first = h.read<float>(gradients[0]),
             second = h.read<float>(gradients[1]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(squares[i], values[i] * values[i]);
    EXPECT_EQ(first[i], weights[i] * values[i]);
    EXPECT_EQ(second[i], first[i]);
  }
}

TEST(Mul, LetsNaNThrough) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  OpHarness h;
  const auto a = h.declare("a", DType::float32, {2, 2}), b = h.declare("b", DType::float32, {1, 2});
  h.write<float>(a, {nan, 2, 3, 4});
  h.write<float>(b, {0, nan});
  const auto y = h.op("mul", {a, b}).front();
  for (const char* kernel : {"tiles", "fused"}) {
    h.run(kernel);
    const auto products = h.read<float>(y);
    EXPECT_TRUE(std::isnan(products[0]));
    EXPECT_TRUE(std::isnan(products[1]));
    EXPECT_EQ(products[2], 0);
    EXPECT_TRUE(std::isnan(products[3]));
  }
}

TEST(Relu, LetsNaNAndInfinityThrough) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  OpHarness h;
  const auto x = h.declare("x", DType::float32, {4}), g = h.declare("g", DType::float32, {4});
  h.write<float>(x, {nan, inf, -inf, -0.0f});
  h.write<float>(g, {1, 2, nan, 4});
  const auto y = h.op("relu", {x}).front();
  h.run("fused");
  const auto out = h.read<float>(y);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(std::vector(out.begin() + 1, out.end()), (std::vector<float>{inf, 0, 0}));
  const auto dx = h.gradient({g}, {true}).front();
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"relu", "relu_grad"}));
  EXPECT_EQ(h.read<float>(dx), (std::vector<float>{1, 2, 0, 0}));
}

TEST(Huber, HasBothGradientsOfOneOp) {
  OpHarness h;
  const auto x = h.random("x", {5}), t = h.random("t", {5}), g = h.random("g", {5});
  h.op("huber", {x, t});
  h.gradient({g}, {true, true});
  EXPECT_EQ(ops_of(h), (std::vector<std::string>{"huber", "map"}));
}

TEST(Formulas, RefuseWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), y = h.random("y", {3, 2});
  const auto z = h.declare("z", DType::int32, {2}), d = h.declare("d", DType::float64, {2, 3});
  const auto op = [&](const char* name, std::vector<ValueId> operands) {
    h.op(name, std::move(operands));
  };
  expect_error([&] { op("silu", {z}); },
               "silu: operand 'x' (z) of type int32; expected float32 or float64");
  expect_error(
      [&] {
        op("mul", {x, d});
      },
      "mul: operand 'b' (d) of type float64; expected float32");
  expect_error(
      [&] {
        op("add", {x, y});
      },
      "add: operand 'b' (y) of shape [3, 2]; expected a shape that fits [2, 3] from the last axis "
      "on, where a size of 1 is repeated");
}

/// As relu of a relu; not of one of several results.
TEST(Formulas, OfThemselvesAreDone) {
  OpHarness h;
  const auto x = h.random("x", {2, 3});
  const auto last = [&]() -> OpView {
    const graph::Graph& graph = h.graph();
    return {graph, graph[graph[graph::Graph::body].ops.back()]};
  };
  const auto map = [&](ValueId of, const char* text) {
    return h.op("map", {of}, {{map_expression, text}});
  };
  const auto once = map(x, "select($1 <= 0, 0, $1)");
  map(once[0], "select($1 <= 0, 0, $1)");
  EXPECT_TRUE(last().op().definition->simplify(last()));
  const auto several = map(x, "yield $1 * 2, select($1 <= 0, 0, $1)");
  map(several[1], "select($1 <= 0, 0, $1)");
  EXPECT_FALSE(last().op().definition->simplify(last()));
}

/// Where all machines make the same bits of constants, they are folded.
TEST(Formulas, OfConstantsAreConstants) {
  OpHarness h;
  const auto full = [&](double value) {
    return h.op("full", {}, {{"shape", std::vector<std::int64_t>{2, 3}}, {"value", value}}).front();
  };
  const auto two = full(2), third = full(0.1), small = full(1e-20);
  const auto simpler = [&](const char* name, std::vector<ValueId> operands) {
    h.op(name, std::move(operands));
    const graph::Graph& graph = h.graph();
    const graph::Op& op = graph[graph[graph::Graph::body].ops.back()];
    return op.definition->simplify(OpView(graph, op));
  };
  const auto product = simpler("mul", {two, third});
  ASSERT_TRUE(product);
  EXPECT_EQ(product->name, "full");
  EXPECT_EQ(product->attributes.real("value"), static_cast<double>(2.0F * 0.1F));
  EXPECT_FALSE(simpler("mul", {small, small}));  // too small to be normal
  EXPECT_FALSE(simpler("silu", {two}));
  EXPECT_FALSE(simpler("mul", {h.random("x", {2, 3}), two}));
}

}  // namespace
}  // namespace arenite::codelets::testing
