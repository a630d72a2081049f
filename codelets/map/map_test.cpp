// Maps against the scalar evaluator, element by element and to the bit, and against formulas.
#include <arenite/graph/verify.hpp>

#include "codelets/map/map_testing.hpp"
#include "src/expr/formulas.hpp"

namespace arenite::codelets::testing {
namespace {

TEST(Map, IsTheExpressionToTheBit) {
  for (unsigned seed = 0; seed < 600 && !HasFailure(); ++seed)
    RandomMap(seed).run(kernels().at("map", "tiles", DeviceKind::cpu));
}

/// A formula in one loop and by instructions, on operands of which some are repeated, and in place.
void compare_fused(const expr::Formula& formula, unsigned seed) {
  SCOPED_TRACE(std::string(formula.name) + ", seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const std::int64_t rows = 1 + pick(4), row = 1 + pick(seed % 3 == 0 ? 1500 : 40);
  OpHarness h(seed);
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < formula.operands.size(); ++i) {
    const Shape shapes[] = {{rows, row}, {row}, {rows, 1}, {}};
    operands.push_back(h.random("x" + std::to_string(i), shapes[i == 0 ? 0 : pick(4)], -6, 6));
  }
  const std::string text = expr::print(formula.standard(Type::float32));
  const auto made = h.op("map", operands, {{map_expression, text}});
  const bool in_place = pick(2) == 0;
  if (in_place) h.in_place(0, 0);
  const auto given = h.read<float>(operands[0]);
  std::vector<std::vector<float>> expected;
  for (const char* kernel : {"tiles", "fused"}) {
    h.write(operands[0], given);
    EXPECT_EQ(h.run(kernels().at("map", kernel, DeviceKind::cpu)), runtime::StatusWord::ok);
    for (std::size_t r = 0; r < made.size(); ++r) {
      const auto found = h.read<float>(made[r]);
      if (expected.size() == r) expected.push_back(found);
      EXPECT_EQ(std::memcmp(found.data(), expected[r].data(), found.size() * sizeof(float)), 0);
    }
  }
}

TEST(Map, MakesTheSameBitsInOneLoop) {
  for (const expr::Formula& formula : expr::formulas()) {
    for (unsigned seed = 0; seed < 20 && !formula.is_of_rows; ++seed) compare_fused(formula, seed);
  }
}

TEST(Map, HasSeveralResultsOfSeveralTypes) {
  OpHarness h;
  const ValueId x = h.random("x", {3, 700});
  const auto made =
      h.op("map", {x}, {{map_expression, "a = $1 * 2; yield a, int32(a * 100), uint8($1 > 0)"}});
  h.run("tiles");
  const auto values = h.read<float>(x), doubled = h.read<float>(made[0]);
  const auto hundreds = h.read<std::int32_t>(made[1]);
  const auto above = h.read<std::uint8_t>(made[2]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(doubled[i], values[i] * 2);
    EXPECT_EQ(hundreds[i], static_cast<std::int32_t>(values[i] * 2 * 100));
    EXPECT_EQ(above[i], values[i] > 0 ? 1 : 0);
  }
}

/// Whatever part of a row a tile is of, and whether places follow one another.
TEST(Map, DrawsTheNumbersOfEachPlace) {
  for (const Shape& shape : {Shape{3, 700}, Shape{130, 7}, Shape{1, 64}, Shape{2000, 1}}) {
    SCOPED_TRACE(to_string(shape));
    OpHarness h;
    constexpr std::int64_t first = (std::int64_t{1} << 40) + 42;
    const ValueId x = h.random("x", shape), seed = h.declare("seed", DType::int64, {1});
    h.write<std::int64_t>(seed, {first});
    const std::string at = "$2 + index(0) * " + std::to_string(shape[1]) + " + index(1)";
    const std::string text = "a = uniform(" + at + ", 7); b = philox((" + at +
                             ") * 3, $2); c = philox(index(0), $2); yield a, b, c, $1";
    const auto made = h.op("map", {x, seed}, {{map_expression, text}});
    h.run("tiles");
    const auto a = h.read<float>(made[0]);
    const auto b = h.read<std::int64_t>(made[1]), c = h.read<std::int64_t>(made[2]);
    const auto drawn = [](std::int64_t element, std::int64_t key) {
      const expr::Node node{.function = expr::Function::philox, .type = expr::Type::int64};
      return static_cast<std::int64_t>(expr::apply_scalar(
          node, expr::Type::int64, std::array{expr::payload_of(element), expr::payload_of(key)}));
    };
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const auto place = static_cast<std::size_t>(i);
      ASSERT_EQ(a[place], static_cast<float>(drawn(first + i, 7) >> 8) * 0x1p-24F) << i;
      ASSERT_EQ(b[place], drawn((first + i) * 3, first)) << i;
      ASSERT_EQ(c[place], drawn(i / shape[1], first)) << i;
    }
  }
}

TEST(Map, GradientsAreOfWhatWasRepeated) {
  struct Shapes {
    Shape x, b;
  };
  for (const Shapes& shapes :
       {Shapes{{4, 6}, {6}}, Shapes{{4, 6}, {4, 1}}, Shapes{{2, 3, 4}, {1, 3, 1}}, Shapes{{5}, {}},
        Shapes{{2, 6}, {2, 6}}}) {
    const Shape &x_shape = shapes.x, &b_shape = shapes.b;
    OpHarness h;
    const ValueId x = h.random("x", x_shape, -2, 2), b = h.random("b", b_shape, -2, 2);
    const auto y = h.op("map", {x, b}, {{map_expression, "a = $1 * $2; yield a / (1 + exp(-a))"}});
    h.run("tiles");  // the gradient may read the result
    const ValueId g = h.random("g", x_shape);
    const auto gradients = h.gradient({g}, {true, true});
    const auto weights = as_doubles(h.read<float>(g));
    const auto of = [&](const std::vector<double>& xs, const std::vector<double>& bs) {
      std::vector<double> made(xs.size());
      for (std::size_t i = 0; i < xs.size(); ++i) {
        const auto at =
            static_cast<std::size_t>(seen_at(x_shape, b_shape, static_cast<std::int64_t>(i)));
        const double a = xs[i] * bs[at];
        made[i] = a / (1 + std::exp(-a));
      }
      return made;
    };
    const auto xs = as_doubles(h.read<float>(x)), bs = as_doubles(h.read<float>(b));
    expect_close(h.read<float>(gradients[0]),
                 numeric_gradient([&](const auto& v) { return of(v, bs); }, xs, weights), 1e-4);
    expect_close(h.read<float>(gradients[1]),
                 numeric_gradient([&](const auto& v) { return of(xs, v); }, bs, weights), 1e-4);
    EXPECT_EQ(h.graph()[gradients[1]].shape, b_shape);
  }
}

/// tanh, relu and sigmoid let go of their operands.
TEST(Map, GradientsAreFromResultsWhereThatIsEnough) {
  for (const char* text : {"tanh($1)", "sigmoid($1)", "select($1 <= 0, 0, $1)"}) {
    OpHarness h;
    const ValueId x = h.random("x", {3, 4});
    const auto y = h.op("map", {x}, {{map_expression, text}});
    h.run("tiles");
    const ValueId g = h.random("g", {3, 4});
    h.gradient({g}, {true});
    const graph::Op& op = h.graph()[h.graph()[graph::Graph::body].ops.back()];
    EXPECT_EQ(std::ranges::count(op.operands, x), 0) << text;
    EXPECT_EQ(std::ranges::count(op.operands, y[0]), 1) << text;
  }
}

/// Bytes of an eighth of the elements: the others would be overwritten before they are read.
TEST(Map, LiesInPlaceOfElementsOfItsSize) {
  for (const auto& [text, fits] : {std::pair{"$1 + $2", true}, {"uint8($1 + $2)", false}}) {
    OpHarness h;
    const ValueId column = h.declare("column", DType::float64, {4, 1});
    const ValueId row = h.declare("row", DType::float64, {fits ? 1 : 8});
    const auto made = h.op("map", {column, row}, {{map_expression, text}});
    h.in_place(0, 0);
    if (fits) {
      EXPECT_NO_THROW(graph::verify(h.graph()));
    } else {
      EXPECT_THROW(graph::verify(h.graph()), Error);
    }
  }
}

TEST(Map, LiesInPlaceWithSeveralResults) {
  for (const char* text :
       {"$1 + $2, $1 - $2, $1 * $2", "$2, $1, $1", "exp($1), $1, $2 * exp($1)"}) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(text);
      OpHarness h;
      const ValueId x = h.random("x", {3, 700}), y = h.random("y", {3, 700});
      const auto values = h.read<float>(x), others = h.read<float>(y);
      const auto made = h.op("map", {x, y}, {{map_expression, std::string("yield ") + text}});
      h.run("tiles");
      std::vector<std::vector<float>> expected;
      for (const ValueId one : made) expected.push_back(h.read<float>(one));
      h.in_place(0, swapped ? 1 : 0);
      h.in_place(1, swapped ? 0 : 1);
      EXPECT_NO_THROW(graph::verify(h.graph()));
      h.write(x, values);
      h.write(y, others);
      h.run("tiles");
      for (std::size_t r = 0; r < made.size(); ++r) EXPECT_EQ(h.read<float>(made[r]), expected[r]);
    }
  }
}

/// However large its storage is.
TEST(Map, LiesNotInPlaceOfWhatIsRepeated) {
  OpHarness h;
  const ValueId row = h.random("row", {1, 600}), whole = h.random("whole", {4, 600});
  h.graph().storage(h.graph()[row].storage).bytes *= 4;
  h.op("map", {row, whole}, {{map_expression, "$1 + $2"}});
  h.in_place(0, 0);
  EXPECT_THROW(graph::verify(h.graph()), Error);
}

/// More than 16 bits could number.
TEST(Map, TakesAnyNumberOfConstants) {
  std::string text = "a0 = $1 - 1; ";
  constexpr int steps = 33'000;
  for (int i = 1; i < steps; ++i) {
    text += "a" + std::to_string(i) + " = a" + std::to_string(i - 1) + " + " +
            std::to_string(1 + i * 0.00006) + "; ";
  }
  text += "yield a" + std::to_string(steps - 1);
  OpHarness h;
  const ValueId x = h.random("x", {});
  const auto made = h.op("map", {x}, {{map_expression, text}});
  h.run("tiles");
  const std::vector<std::uint64_t> operands{expr::payload_of(h.read<float>(x)[0])};
  const Expression formula = expr::parse(text, std::vector{Type::float32});
  EXPECT_EQ(expr::payload_of(h.read<float>(made[0])[0]), expr::evaluate(formula, operands)[0]);
}

/// It is asked for before results are laid in place, and used afterwards.
TEST(Map, NeedsNoMoreWorkspaceInPlace) {
  // Too many values at once for the stack.
  std::string many, sum = "$1";
  for (int i = 0; i < 80; ++i) {
    const std::string name = "a" + std::to_string(i);
    many += name + " = exp($1 * 0." + std::to_string(i + 10) + "); ";
    sum = name + (i % 2 == 0 ? " * (" : " + (") + sum + ")";
  }
  for (const char* results : {"$1 * 2, $1 + $2", "$1, $1 + $2", "$2, $1"}) {
    const std::string text = many + "yield " + results + ", " + sum;
    OpHarness h;
    const ValueId x = h.random("x", {40, 30}), y = h.random("y", {40, 30});
    h.op("map", {x, y}, {{map_expression, text}});
    const auto workspace = [&] {
      const graph::Op& op = h.graph()[h.graph()[graph::Graph::body].ops.back()];
      return kernels().find("map").front().workspace(OpView(h.graph(), op));
    };
    const std::int64_t asked = workspace();
    EXPECT_GT(asked, 0);
    h.in_place(0, 0);
    EXPECT_EQ(workspace(), asked) << text;
  }
}

/// A sum's are the result's own.
TEST(Map, AppendsNothingForGradientsThatAreThere) {
  OpHarness h;
  const ValueId x = h.random("x", {3, 4}), b = h.random("b", {3, 4}), c = h.random("c", {3, 4});
  h.op("map", {x, b, c}, {{map_expression, "$1 + $2 * $3"}});
  h.run("tiles");
  const ValueId g = h.random("g", {3, 4});
  const auto gradients = h.gradient({g}, {true, true, true});
  EXPECT_EQ(gradients[0], g);
  for (const std::size_t i : {1, 2})
    EXPECT_EQ(h.graph()[h.graph()[gradients[i]].producer].name(), "mul");
  const std::size_t ops = h.graph().op_count();
  h.op("map", {x, b}, {{map_expression, "$1 + $2"}});
  EXPECT_EQ(h.gradient({g}, {true, true}), (std::vector<ValueId>{g, g}));
  EXPECT_EQ(h.graph().op_count(), ops + 1);
}

TEST(Map, HasNoGradientWhereItIsFlat) {
  OpHarness h;
  const ValueId x = h.random("x", {3});
  h.op("map", {x}, {{map_expression, "pow($1, 0)"}});
  const ValueId g = h.random("g", {3});
  EXPECT_FALSE(h.gradient({g}, {true})[0]);
}

TEST(Map, RefusesWhatDoesNotFit) {
  OpHarness h;
  const ValueId x = h.random("x", {2, 3}), b = h.random("b", {4});
  const ValueId i = h.declare("i", DType::int32, {2, 3});
  const auto map = [&](std::vector<ValueId> operands, const char* text) {
    h.op("map", std::move(operands), {{map_expression, text}});
  };
  expect_error(
      [&] {
        map({x, b}, "$1 + $2");
      },
      "map: operand $2 (b) of shape [4]; expected a shape that fits [2, 3] from the last axis on, "
      "where a size of 1 is repeated");
  expect_error([&] { map({x}, "$1 + float32(index(2))"); },
               "map: index(2); expected an axis of the operands' joint shape [2, 3]");
  EXPECT_THROW(map({x, i}, "$1 + $2"), Error);
  EXPECT_THROW(map({x, x}, "$1"), Error);
  EXPECT_THROW(map({x}, "$1 +"), Error);
}

}  // namespace
}  // namespace arenite::codelets::testing
