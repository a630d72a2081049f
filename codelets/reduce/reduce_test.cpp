#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>

#include "codelets/reduce/reduce_testing.hpp"

namespace arenite::codelets::testing {
namespace {

const std::vector<std::string> of_floats{
    "sum($1)",
    "mean($1 * $2)",
    "prod(1 + ($1 - 1) * 0.01)",
    "yield min($1), max($1 + $2)",
    "yield argmin($1), argmax($1 * $2)",
    "select(any($1 > 1.9), sum($1), select(all($1 > 0.6), $2, $1))",
    "variance($1)",
    "logsumexp($1)",
    "e = exp($1 - max($1)); yield e / sum(e)",
    "m = mean($1); d = $1 - m; v = mean(d * d); yield d * rsqrt(v + 1e-5) * $2, m, v",
    "$1 * rsqrt(mean($1 * $1) + 1e-5) * $2",
    "$1 * sum($2) + float64_or_32(count())",
    "yield $1, sum($1), $1 * 2",
    "a = sum($1); yield a * a + mean($2 * a)",
    "exp(mean(log($1))) / sum($2)",
};

std::string typed(std::string text, const char* type) {
  const std::string_view any = "float64_or_32";
  if (const auto at = text.find(any); at != std::string::npos) text.replace(at, any.size(), type);
  return text;
}

TEST(Reduce, MatchesTheReferenceOnFloats) {
  for (const std::string& text : of_floats) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      ReduceCase(seed).run<float>(typed(text, "float32"), 2e-5);
      ReduceCase(100 + seed).run<double>(typed(text, "float64"), 1e-11);
    }
  }
}

TEST(Reduce, MatchesTheReferenceOnIntegers) {
  for (const char* text : {"sum($1)", "prod($1)", "yield min($1), max($1), argmin($1), argmax($1)",
                           "$1 * sum($2) + max($1)", "select(any($1 > 3), sum($1), $2)",
                           "yield sum(select($1 > 0, $1, 0)), count()", "$1 + sum($1) % 3"}) {
    for (unsigned seed = 0; seed < 8; ++seed) {
      if (std::string_view(text).find("count") == std::string_view::npos)
        ReduceCase(seed).run<std::int32_t>(text, 0);
      ReduceCase(100 + seed).run<std::int64_t>(text, 0);
    }
  }
}

/// Loops of whole formulas, of rows that fill vectors and that do not.
TEST(Reduce, HasTheBitsOfTilesInLoopsOfItsOwn) {
  for (const char* text :
       {"sum($1)", "$1 * rsqrt(mean($1 * $1) + 1e-5) * $2",
        "e = exp($1 - max($1)); yield e * (1 / sum(e))", "$2 * ($1 - sum($1 * $2))"}) {
    for (const std::int64_t length : {64, 65, 79, 80, 81, 100, 513, 3000}) {
      SCOPED_TRACE(std::string(text) + " of " + std::to_string(length));
      OpHarness h(static_cast<unsigned>(length));
      std::vector<ValueId> operands{h.random("x", {7, length})};
      if (expr::operand_count(text) > 1)
        operands.push_back(h.random("y", length % 2 == 0 ? Shape{length} : Shape{7, length}));
      const auto y = h.op("reduce", operands, formula(text, {1})).front();
      ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
      const auto expected = h.read<float>(y);
      ASSERT_EQ(h.run("fused"), runtime::StatusWord::ok);
      EXPECT_EQ(h.read<float>(y), expected);
    }
  }
}

/// Of rows along two axes, with operands that are the same for some of them, or within them.
TEST(Reduce, HasTheBitsOfTilesWhereverRowsLie) {
  for (const char* text : {"$1 * rsqrt(mean($1 * $1) + 1e-5) * $2", "$2 * ($1 - sum($1 * $2))"}) {
    for (const std::int64_t length : {64, 95, 513}) {
      for (const Shape& shape : {Shape{2, 5, length}, Shape{5, length}, Shape{2, 1, length},
                                 Shape{length}, Shape{2, 5, 1}, Shape{5, 1}, Shape{1}}) {
        SCOPED_TRACE(text + (" of " + std::to_string(length)) + " and " + to_string(shape));
        OpHarness h(static_cast<unsigned>(length));
        const std::vector<ValueId> operands{h.random("x", {2, 5, length}), h.random("y", shape)};
        const auto y = h.op("reduce", operands, formula(text, {2})).front();
        ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
        const auto expected = h.read<float>(y);
        ASSERT_EQ(h.run("fused"), runtime::StatusWord::ok);
        EXPECT_EQ(h.read<float>(y), expected);
      }
    }
  }
}

/// Of whatever lies as the result does, in rows and in columns, in one sweep and in several.
TEST(Reduce, RunsInPlaceOfAnyOperand) {
  for (const char* text :
       {"$1 * rsqrt(mean($1 * $2) + 3)", "e = exp($1 - max($1)); yield e * $2 / sum(e)",
        "$2 * ($1 - sum($1 * $2))", "d = $1 - mean($2); yield d * sum(d * d) + $2",
        "yield $2 - max($1), sum($1 * $2), $1 + $2"}) {
    for (const auto& [shape, axes] : {std::pair{Shape{7, 100}, List{1}},
                                      {Shape{40, 6}, List{1}},
                                      {Shape{90, 70}, List{0}},
                                      {Shape{5, 9, 33}, List{1}},
                                      {Shape{300, 3, 2}, List{0, 2}},
                                      {Shape{4, 70, 1}, List{1}}}) {
      SCOPED_TRACE(std::string(text) + " of " + to_string(shape));
      OpHarness h(static_cast<unsigned>(shape.elements()));
      const std::vector<ValueId> operands{h.random("x", shape, 0, 1), h.random("y", shape, 0, 1)};
      const std::vector kept{h.read<float>(operands[0]), h.read<float>(operands[1])};
      const auto read_all = [&](const std::vector<ValueId>& results) {
        std::vector<std::vector<float>> all;
        for (ValueId id : results) all.push_back(h.read<float>(id));
        return all;
      };
      h.op("reduce", operands, formula(text, axes));
      for (const std::string& kernel : h.cpu_kernels()) {
        const auto alone = h.op("reduce", operands, formula(text, axes));
        ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
        const auto expected = read_all(alone);
        for (const std::size_t operand : {0u, 1u}) {
          const auto together = h.op("reduce", operands, formula(text, axes));
          h.in_place(0, operand);
          ASSERT_EQ(h.run(kernel), runtime::StatusWord::ok);
          EXPECT_EQ(read_all(together), expected) << kernel << " in operand " << operand;
          h.write(operands[operand], kept[operand]);
        }
      }
    }
  }
}

/// Other groups still read what has an element for each of a group's.
TEST(Reduce, LiesInPlaceOfWholeOperandsAlone) {
  const auto merged = [](const std::string& statements) {
    graph::Graph graph = graph::parse(
        "$1 = InputTensor(x, float32, [20, 20]); $2 = InputTensor(b, float32, [20]);" + statements,
        operators());
    return graph::in_place(graph);
  };
  EXPECT_EQ(merged("$3 = silu($2); $4 = reduce($1, $3, axes=[1]) { sum($1 * $2) }; result = $4;"),
            0);
  EXPECT_EQ(merged("$3 = silu($2); $5 = reshape($3, shape=[20, 1]);"
                   "$4 = reduce($1, $5, axes=[0]) { sum($1 * $2) }; result = $4;"),
            0);
  EXPECT_EQ(merged("$3 = silu($1); $4 = reduce($3, axes=[1]) { $1 / sum($1) }; result = $4;"), 1);
}

TEST(Reduce, KnowsIndices) {
  OpHarness h;
  const auto x = h.random("x", {2, 3, 5});
  const auto y =
      h.op("reduce", {x},
           formula("$1 * 0 + float32(max(index(2)) * 100 + sum(index(1)) * 10 + index(0))", {1}));
  ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
  const auto found = h.read<float>(y.front());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t expected = i % 5 * 100 + 30 + i / 15;
    EXPECT_EQ(found[i], static_cast<float>(expected));
  }
}

TEST(Reduce, GradientsAgreeWithDifferences) {
  for (const std::string& text : of_floats) {
    if (text.find("arg") != std::string::npos || text.find("any") != std::string::npos) continue;
    for (unsigned seed = 0; seed < 10; ++seed)
      ReduceCase(seed).check_gradient(typed(text, "float64"));
  }
}

/// What operands have may not be all that is gone through: groups and places are still whole.
TEST(Reduce, GradientsGoThroughWholeGroups) {
  const auto gradient = [](const std::string& text, const Shape& second, std::size_t of) {
    OpHarness h;
    std::vector<ValueId> operands{h.declare("x", DType::float32, {2, 3})};
    h.write<float>(operands[0], {1, 2, 3, 4, 5, 6});
    if (expr::operand_count(text) > 1) {
      operands.push_back(h.declare("w", DType::float32, second));
      h.write(operands[1], std::vector<float>(static_cast<std::size_t>(second.elements()), 2));
    }
    const auto results = h.op("reduce", operands, formula(text, {1}));
    std::vector<ValueId> seeds;
    for (const ValueId result : results) {
      const Shape shape = h.graph()[result].shape;
      seeds.push_back(h.declare("g" + std::to_string(seeds.size()), DType::float32, shape));
      h.write(seeds.back(), std::vector<float>(static_cast<std::size_t>(shape.elements()), 1));
    }
    std::vector<bool> wanted(operands.size(), false);
    wanted[of] = true;
    return h.read<float>(h.gradient(seeds, wanted)[of]);
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(gradient("sum($1 * float32(index(1)))", {}, 0), (Floats{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(gradient("sum(select(index(1) < 2, $1, 0))", {}, 0), (Floats{1, 1, 0, 1, 1, 0}));
  EXPECT_EQ(gradient("sum($2 * sum($1))", {1}, 0), Floats(6, 6));
  EXPECT_EQ(gradient("sum($2 * sum($1))", {2, 1}, 0), Floats(6, 6));
  EXPECT_EQ(gradient("s = sum($1); yield s, max(s)", {}, 0), Floats(6, 2));
  EXPECT_EQ(gradient("sum($1 * $2)", {3}, 1), (Floats{5, 7, 9}));
}

/// How many elements there are decides numbers, and no shape.
TEST(Reduce, CountsChangeNoShapes) {
  const auto reduced = [](const std::string& text, const Shape& shape, std::int64_t keep) {
    OpHarness h;
    const auto x = h.declare("x", DType::float32, shape);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    std::iota(values.begin(), values.end(), 1.0F);
    h.write(x, values);
    std::vector<std::vector<float>> made;
    const auto results = h.op("reduce", {x}, formula(text, {1}, keep));
    EXPECT_EQ(h.run("tiles"), runtime::StatusWord::ok);
    for (const ValueId result : results) made.push_back(h.read<float>(result));
    return made;
  };
  using All = std::vector<std::vector<float>>;
  EXPECT_EQ(reduced("yield $1 * 2, float32(count())", {2, 2}, 0), (All{{2, 4, 6, 8}, {2, 2}}));
  EXPECT_EQ(reduced("select(count() > 1, $1 - mean($1), 0)", {3, 1}, 0), (All{{0, 0, 0}}));
  EXPECT_EQ(reduced("select(count() > 2, sum($1), $1)", {2, 3}, 1), (All{{6, 6, 6, 15, 15, 15}}));
}

/// What is one for a row of the elements, and what is one for each of many groups side by side.
TEST(Reduce, MixesRowsAndManyGroups) {
  for (const std::int64_t columns : {5, 100, 300, 513, 1200}) {
    SCOPED_TRACE(columns);
    OpHarness h;
    const auto x = h.random("x", {3, columns}), w = h.random("w", {3, 1}, 0.5, 1);
    const auto y =
        h.op("reduce", {x, w}, formula("$1 - $2 * sum($1 * $2) / sum($2 * $2)", {0})).front();
    ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
    const auto a = as_doubles(h.read<float>(x)), b = as_doubles(h.read<float>(w));
    const auto found = h.read<float>(y);
    const double squares = b[0] * b[0] + b[1] * b[1] + b[2] * b[2];
    const auto n = static_cast<std::size_t>(columns);
    for (std::size_t c = 0; c < n; ++c) {
      const double sum = a[c] * b[0] + a[n + c] * b[1] + a[2 * n + c] * b[2];
      for (std::size_t r = 0; r < 3; ++r)
        ASSERT_NEAR(found[r * n + c], a[r * n + c] - b[r] * sum / squares, 1e-5) << r << ", " << c;
    }
  }
}

/// However many there are, and whatever lies around them.
TEST(Reduce, SomeGroupsHaveTheBitsOfAll) {
  for (const Shape& shape : {Shape{40, 10, 1, 1}, Shape{40, 3, 5, 7}, Shape{40, 1, 700, 1},
                             Shape{40, 9, 9, 3}, Shape{40, 70, 1, 2}}) {
    for (const List& axes : {List{1, 2}, List{1, 2, 3}, List{2}}) {
      SCOPED_TRACE(to_string(shape) + " along " + graph::to_string(axes));
      OpHarness h;
      const auto x = h.random("x", shape, -1, 1, 1);
      const auto all = h.op("reduce", {x}, formula("sum($1)", axes)).front();
      ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
      const auto whole = h.read<float>(all);
      const auto values = h.read<float>(x);
      for (const std::int64_t rows : {1, 4, 16}) {
        std::vector<std::int64_t> dims(shape.begin(), shape.end());
        dims[0] = rows;
        const auto part = h.declare("p" + std::to_string(rows), DType::float32, Shape(dims));
        const auto each = static_cast<std::size_t>(shape.elements() / shape[0] * rows);
        h.write(part, std::vector<float>(values.begin(),
                                         values.begin() + static_cast<std::ptrdiff_t>(each)));
        const auto some = h.op("reduce", {part}, formula("sum($1)", axes)).front();
        ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
        const auto found = h.read<float>(some);
        EXPECT_TRUE(std::equal(found.begin(), found.end(), whole.begin())) << rows;
      }
    }
  }
}

/// To 1e-6 of the variance, of 10,000 numbers around 1e4.
TEST(Reduce, VarianceIsPreciseFarFromZero) {
  std::mt19937 random(1);
  std::normal_distribution<float> number(1e4F, 1);
  for (const auto& [shape, axes] :
       {std::pair{Shape{10000}, List{0}}, {Shape{10000, 3}, List{0}}, {Shape{5, 10000}, List{1}}}) {
    OpHarness h;
    const auto x = h.declare("x", DType::float32, shape);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& one : values) one = number(random);
    h.write(x, values);
    const auto v = h.op("reduce", {x}, formula("variance($1)", axes)).front();
    ASSERT_EQ(h.run("tiles"), runtime::StatusWord::ok);
    const auto found = h.read<float>(v);
    const bool apart = axes[0] == 0;
    for (std::size_t g = 0; g < found.size(); ++g) {
      long double mean = 0, sum = 0;
      const auto at = [&](std::size_t i) {
        return static_cast<long double>(values[apart ? i * found.size() + g : g * 10000 + i]);
      };
      for (std::size_t i = 0; i < 10000; ++i) mean += at(i) / 10000;
      for (std::size_t i = 0; i < 10000; ++i) sum += (at(i) - mean) * (at(i) - mean) / 10000;
      EXPECT_NEAR(found[g] / static_cast<double>(sum), 1, 1e-6);
    }
  }
}

TEST(Reduce, OfNothing) {
  OpHarness h;
  const auto x = h.random("x", {3, 0}), y = h.random("y", {0, 3});
  const auto sum = h.op("reduce", {x}, formula("sum($1)", {1})).front();
  h.run("tiles");
  EXPECT_EQ(h.read<float>(sum), std::vector<float>(3, 0));
  const auto product = h.op("reduce", {y}, formula("prod($1)", {0})).front();
  h.run("tiles");
  EXPECT_EQ(h.read<float>(product), std::vector<float>(3, 1));
  h.op("reduce", {y}, formula("max($1)", {1}));
  EXPECT_EQ(h.run("tiles"), runtime::StatusWord::ok);
}

TEST(Reduce, RefusesWhatDoesNotMatch) {
  OpHarness h;
  const auto x = h.random("x", {2, 3}), e = h.random("e", {2, 0});
  const auto refused = [&](ValueId of, const std::string& text, List axes, const char* error) {
    expect_error([&] { h.op("reduce", {of}, formula(text, std::move(axes))); }, error);
  };
  refused(x, "sum($1)", {2}, "reduce: axes=[2]; expected axes of [2, 3], each of them once");
  refused(x, "sum($1)", {0, -2},
          "reduce: axes=[0, -2]; expected axes of [2, 3], each of them once");
  refused(x, "sum($1)", {}, "reduce: axes=[]; expected at least one axis (hint: map reduces none)");
  refused(x, "$1 + 1", {0},
          "reduce: a formula that reduces nothing; expected one with sum(…), max(…) or their like "
          "(hint: map takes it)");
  refused(e, "max($1)", {1},
          "reduce: groups of no element of [2, 0]; expected at least one, for min, max, argmin and "
          "argmax");
  refused(x, "sum($1 * float32(index(2)))", {1},
          "reduce: index(2); expected an axis of the operands' joint shape [2, 3]");
  expect_error(
      [&] {
        h.op("map", {x}, {{map_expression, std::string("sum($1)")}});
      },
      "map: a formula that reduces groups of elements, in a map; expected a `reduce`, "
      "which says what groups are: reduce($1, axes=[0]) { … }");
}

}  // namespace
}  // namespace arenite::codelets::testing
