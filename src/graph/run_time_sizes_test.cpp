#include <arenite/graph/run_time_sizes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

using testing::error_of;
using testing::table;

constexpr const char* script = R"(
$1 = InputTensor(x, float32, [rows<=64, 12, 12, width<=8]);
$2 = InputTensor(y, float32, [rows, 6, 6, width]);
$3 = ParameterTensor(w, float32, [3]);
$4, $5 = pool($1);
$6 = add($4, $2);
$7 = slice($6, 2, 5);
$8 = loop(_, _, $6, max_trips=3) ($9, $10) {
  $11 = relu($10);
  yield $11;
};
$12 = concat($8, $5);
result = $12, $7;
)";

constexpr const char* script_with_attributes = R"(
$1 = InputTensor(x, float32, [rows<=64, 12, width<=8]);
$2 = reshape($1, [rows, 3, 4, width]);
$3 = slice($2, begin=0, end=rows);
$4 = scale($3, by=rows);
$5 = scale($4, by=0.5);
$6 = loop(_, _, $5, max_trips=width) ($7, $8) {
  $9 = reshape($8, shape=[rows, width, 12]);
  $10 = reshape($9, shape=[rows, 3, 4, width]);
  yield $10;
};
$11, $12 = pool($6, kernel=[1, 4], mode="rows");
result = $11, $3;
)";

/// The same with numbers for names; texts stay.
Graph written_with(const std::string& rows, const std::string& width, std::string text = script) {
  for (const auto& [name, size] : {std::pair{std::string("rows"), rows}, {"width", width}}) {
    for (const std::string& bound : {std::string("<=64"), std::string("<=8"), std::string()}) {
      for (std::size_t at = 0; (at = text.find(name + bound, at)) != std::string::npos; ++at) {
        if (text[at - 1] != '"') text.replace(at, (name + bound).size(), size);
      }
    }
  }
  return parse(text, table());
}

std::string why_not_equal(const Graph& a, const Graph& b) {
  std::string why;
  return equal(a, b, &why) ? "equal" : why;
}

TEST(RunTimeSizes, AreInferredAtTheirBounds) {
  const Graph graph = parse(script, table());
  EXPECT_EQ(run_time_sizes(graph), (std::vector<RunTimeSize>{{"rows", 64}, {"width", 8}}));
  const ValueId x = graph.find("x");
  EXPECT_EQ(graph[x].shape, (Shape{64, 12, 12, 8}));
  EXPECT_EQ(graph[x].size_names, (std::vector<std::string>{"rows", "", "", "width"}));
  EXPECT_EQ(graph.root_storage(x).bytes, 64 * 12 * 12 * 8 * 4);
  EXPECT_EQ(graph[graph.outputs[0]].shape, (Shape{2 * 64 * 6 * 6 * 8}));
  EXPECT_TRUE(run_time_sizes(written_with("64", "8")).empty());
}

TEST(RunTimeSizes, ArePrintedAndCompared) {
  const Graph graph = parse(script, table());
  const std::string text = print(graph);
  EXPECT_NE(text.find("InputTensor(x, float32, [rows<=64, 12, 12, width<=8]);"), std::string::npos)
      << text;
  EXPECT_EQ(why_not_equal(parse(text, table()), graph), "equal");
  EXPECT_EQ(why_not_equal(graph, written_with("64", "8")),
            "value 'x': names of its sizes against others");
}

TEST(RunTimeSizes, GivenTheyMakeTheGraphThatOneWouldHaveWritten) {
  const Graph graph = parse(script, table());
  for (const int rows : {5, 40, 64}) {
    for (const int width : {1, 7, 8}) {
      const Graph made = at_sizes(graph, {{"rows", rows}, {"width", width}});
      EXPECT_EQ(why_not_equal(made, written_with(std::to_string(rows), std::to_string(width))),
                "equal")
          << rows << " by " << width;
    }
  }
}

TEST(RunTimeSizes, StandInAttributes) {
  const Graph graph = parse(script_with_attributes, table());
  const Op& reshape = graph[graph[Graph::body].ops[0]];
  EXPECT_EQ(reshape.attributes.integers("shape"), (std::vector<std::int64_t>{64, 3, 4, 8}));
  EXPECT_EQ(reshape.attributes.size_names("shape"),
            (std::vector<std::string>{"rows", "", "", "width"}));
  const std::string text = print(graph);
  for (const char* said : {"shape=[rows, 3, 4, width]", "end=rows", "by=rows", "max_trips=width",
                           "mode=\"rows\"", "[1, 4]", "by=0.5"})
    EXPECT_NE(text.find(said), std::string::npos) << said << " in\n" << text;
  EXPECT_EQ(why_not_equal(parse(text, table()), graph), "equal");
  EXPECT_EQ(print(parse(text, table())), text);

  Graph fixed = graph;
  fix_attributes(fixed);
  EXPECT_EQ(why_not_equal(graph, fixed), "reshape #0: attributes against others");
  EXPECT_EQ(print(fixed).find("[rows,"), std::string::npos);
  EXPECT_EQ(run_time_sizes(fixed), run_time_sizes(graph));
}

TEST(RunTimeSizes, OfAttributesFollowForEachSize) {
  const Graph graph = parse(script_with_attributes, table());
  for (int rows = 1; rows <= 64; ++rows) {
    const int width = 1 + rows % 8;
    const std::string text = std::to_string(rows), wide = std::to_string(width);
    const Graph made = at_sizes(graph, {{"rows", rows}, {"width", width}});
    EXPECT_EQ(why_not_equal(made, written_with(text, wide, script_with_attributes)), "equal");
    const Graph half = at_sizes(graph, {{"rows", rows}});
    EXPECT_EQ(half[half[Graph::body].ops[0]].attributes.size_names("shape"),
              (std::vector<std::string>{"", "", "", "width"}));
    EXPECT_EQ(why_not_equal(at_sizes(half, {{"width", width}}), made), "equal");
  }
}

TEST(RunTimeSizes, MayHaveLowerBounds) {
  const Graph graph = parse(script_with_attributes, table());
  const Graph lower = at_bounds(graph, {{"rows", 40}});
  EXPECT_EQ(run_time_sizes(lower), (std::vector<RunTimeSize>{{"rows", 40}, {"width", 8}}));
  EXPECT_EQ(lower[lower[Graph::body].ops[0]].attributes.size_names("shape"),
            (std::vector<std::string>{"rows", "", "", "width"}));
  EXPECT_EQ(why_not_equal(parse(print(lower), table()), lower), "equal");
  for (const int rows : {1, 40}) {
    EXPECT_EQ(why_not_equal(at_sizes(lower, {{"rows", rows}}), at_sizes(graph, {{"rows", rows}})),
              "equal");
  }
  EXPECT_EQ(why_not_equal(at_bounds(graph, {{"rows", 64}, {"width", 8}}), graph), "equal");
}

TEST(RunTimeSizes, OfAttributesAreDeclaredBeforeTheyStandThere) {
  Graph graph = parse(
      "$1 = InputTensor(x, float32, [6]);\n$2 = slice($1, 0, 4);\n"
      "$3 = InputTensor(y, float32, [n<=4]);\nresult = $2, $3;",
      table());
  graph[OpId(0)].attributes.set("end", std::int64_t{4}, {"n"});
  verify(graph);
  EXPECT_EQ(why_not_equal(parse(print(graph), table()), graph), "equal");
}

TEST(RunTimeSizes, NotGivenStayAtLarge) {
  const Graph made = at_sizes(parse(script, table()), {{"rows", 40}});
  EXPECT_EQ(run_time_sizes(made), (std::vector<RunTimeSize>{{"width", 8}}));
  EXPECT_EQ(why_not_equal(at_sizes(made, {{"width", 3}}), written_with("40", "3")), "equal");
}

TEST(RunTimeSizes, LeaveLargerStoragesAndSharedBytesAlone) {
  const Graph graph = parse(
      "$1 = InputTensor(x, float32, [rows<=8]);\n"
      "$2 @bytes(4096) = relu($1);\n"
      "$3 @in($2) = relu($2);\n"
      "result = $3;",
      table());
  const Graph made = at_sizes(graph, {{"rows", 3}});
  EXPECT_EQ(made.root_storage(made.outputs[0]).bytes, 4096);
  EXPECT_EQ(made.storage(made[made.outputs[0]].storage).bytes, 12);
}

TEST(RunTimeSizes, RefuseWhatIsNotASize) {
  const Graph graph = parse(script, table());
  EXPECT_EQ(error_of([&] {
              at_sizes(graph, {{"row", 3}});
            }),
            "unknown size 'row'; expected one of rows, width (hint: did you mean 'rows'?)");
  EXPECT_EQ(error_of([&] {
              at_sizes(graph, {{"rows", 65}});
            }),
            "size rows=65; expected 1 to 64, its upper bound");
  EXPECT_EQ(error_of([&] {
              at_sizes(graph, {{"rows", 0}});
            }),
            "size rows=0; expected 1 to 64, its upper bound");
  EXPECT_EQ(error_of([&] {
              at_sizes(written_with("5", "1"), {{"rows", 3}});
            }),
            "unknown size 'rows'; expected none: all sizes of the graph are known");
}

TEST(RunTimeSizes, FindOpsThatHoldForOneSizeAlone) {
  const Graph cut = parse(script, table());
  EXPECT_EQ(error_of([&] {
              at_sizes(cut, {{"rows", 4}});
            }),
            "slice #2 at rows=4: rows 2 to 5 of [4, 6, 6, 8]; expected rows of the first axis "
            "(hint: an attribute that holds a number for a named size fits that number alone)");
  const Graph chosen = parse(
      "$1 = InputTensor(x, float32, [rows<=8]);\n$2 = relu($1) @kernel(\"plain\");\nresult = $2;",
      table());
  EXPECT_EQ(error_of([&] {
              at_sizes(chosen, {{"rows", 4}});
            }),
            "relu #0: an op with a kernel or a workspace; expected sizes given before `select`");
}

TEST(RunTimeSizes, AreGivenBeforeGradients) {
  const Graph graph = parse(
      "$1 = InputTensor(x, float32, [rows<=8]);\n$2 = relu($1) @backward;\nresult = $2;", table());
  EXPECT_EQ(error_of([&] {
              at_sizes(graph, {{"rows", 4}});
            }),
            "relu #0 at rows=4: an op of phase backward; expected sizes given before gradients are "
            "made (hint: 'train' makes them afterwards, but 'grad' where it stands)");
  EXPECT_TRUE(run_time_sizes(at_sizes(graph, {{"rows", 8}})).empty());
}

TEST(RunTimeSizes, NeedAnUpperBoundInScripts) {
  const auto error = [](const std::string& dimensions) {
    return error_of([&] {
      parse("$1 = InputTensor(x, float32, " + dimensions + ");\nresult = $1;", table(), "net.txt");
    });
  };
  const std::string hint =
      " (hint: a size known only at run time has a name and an upper bound, as in [rows<=64, 784], "
      "and is planned at it)";
  const std::string wanted = "; expected a dimension of 'x', an integer of at least 0" + hint;
  EXPECT_EQ(
      error("[rows, 2]"),
      "net.txt:1:31: dimension 'rows' of 'x', known only at run time, without an upper bound; "
      "expected one, as in rows<=64 (hint: memory is planned at the bound)");
  EXPECT_EQ(error("[2, ?]"), "net.txt:1:34: '?'" + wanted);
  EXPECT_EQ(error("[-1, 2]"), "net.txt:1:31: '-1'" + wanted);
  EXPECT_EQ(error("[[2]]"), "net.txt:1:31: '['" + wanted);
  EXPECT_EQ(error("[<=4, 2]"), "net.txt:1:31: '<='" + wanted);
  EXPECT_EQ(error("[rows<4]"), "net.txt:1:35: '<'; expected '<=' and an upper bound of 'rows'");
  EXPECT_EQ(error("[rows<=]"), "net.txt:1:37: ']'; expected the upper bound of 'rows'");
  EXPECT_EQ(error("[rows<=0]"),
            "net.txt:1:37: '0'; expected an upper bound of at least 1 for 'rows'");
  EXPECT_EQ(error("[rows<=4, rows<=5]"),
            "net.txt:1:46: a second upper bound '5' of 'rows'; expected the first one, 4");
  EXPECT_EQ(error("[_<=4]"),
            "net.txt:1:1: value 'x' (#0): a size named '_'; expected a name of letters, digits, "
            "'_' and '.'");
}

TEST(RunTimeSizes, OfAttributesAreKnown) {
  const auto error = [](const std::string& statement) {
    return error_of([&] {
      parse("$1 = InputTensor(x, float32, [rows<=4, 6]);\n$2 = " + statement + "\nresult = $2;",
            table(), "net.txt");
    });
  };
  const std::string wanted =
      "; expected a number, or a size that a declaration above names, as in [rows<=64, 784]";
  EXPECT_EQ(error("reshape($1, [row, 6]);"),
            "net.txt:2:19: unknown size 'row'" + wanted + " (hint: did you mean 'rows'?)");
  EXPECT_EQ(error("slice($1, 0, columns);"), "net.txt:2:19: unknown size 'columns'" + wanted);
  EXPECT_EQ(error("scale($1, by=infinite);"), "net.txt:2:19: unknown size 'infinite'" + wanted);
  EXPECT_EQ(error("slice($1, 0, \"rows\");"),
            "net.txt:2:6: slice: attribute end=rows; expected an integer");
  EXPECT_EQ(error("slice($1, rows, 0);"),
            "net.txt:2:6: slice: rows 4 to 0 of [4, 6]; expected rows of the first axis");
  EXPECT_EQ(error("reshape($1, [rows, \"6\"]);"), "net.txt:2:25: '\"6\"'; expected an integer");
  EXPECT_EQ(error("reshape($1, [rows<=4, 6]);"), "net.txt:2:23: '<='; expected ']' after the list");
  EXPECT_EQ(error("scale($1, inf);"), "(no error)");
}

TEST(RunTimeSizes, OfAttributesAreVerified) {
  const auto flaw = [](auto change) {
    return error_of([&] {
      Graph graph = parse(script_with_attributes, table());
      change(graph[OpId(1)].attributes);
      verify(graph);
    });
  };
  EXPECT_EQ(flaw([](Attributes& a) { a.set("end", std::int64_t{64}, {"columns"}); }),
            "slice #1: size 'columns' in attribute end=64; expected a size that a declared value "
            "has");
  EXPECT_EQ(flaw([](Attributes& a) { a.set("end", std::int64_t{64}, {"width"}); }),
            "slice #1: size 'width' in attribute end=64; expected 8 there, its upper bound");
  EXPECT_EQ(flaw([](Attributes& a) {
              a.set("end", std::int64_t{64}, {"", "rows"});
            }),
            "slice #1: 2 names of sizes for attribute end=64; expected one for each number, \"\" "
            "for those that are none");
  EXPECT_EQ(flaw([](Attributes& a) { a.set("end", std::int64_t{64}); }), "(no error)");
  EXPECT_EQ(error_of([] {
              Graph graph = parse(
                  "$1 = InputTensor(x, float32, [inf<=4]);\n$2 = scale($1, by=4);\nresult = $2;",
                  table());
              graph[OpId(0)].attributes.set("by", 4.0, {"inf"});
              verify(graph);
            }),
            "scale #0: size 'inf' in attribute by=4.0; expected another name in place of a real "
            "number");
}

TEST(RunTimeSizes, OfViewsAreNotFollowedIntoNewVersions) {
  const auto error = [](const std::string& statements) {
    return error_of([&] {
      parse("$1 = InputTensor(x, float32, [rows<=4, 6]);\n$2 = relu($1);\n" + statements +
                "\nresult = $3;",
            table(), "net.txt");
    });
  };
  const std::string refused =
      "'reshape', a view by a named size, of which there is a new version; expected views by "
      "numbers (hint: give the new version a number of its own, '$… =', and take the view of "
      "that)";
  EXPECT_EQ(error("$3 = reshape($2, [rows, 3, 2]); accumulate($3, $3);"),
            "net.txt:3:33: " + refused);
  EXPECT_EQ(error("$3 = reshape($2, [rows, 3, 2]); accumulate($2, $1);"),
            "net.txt:4:10: " + refused);
  EXPECT_EQ(error("$3 = reshape($2, [4, 3, 2]); accumulate($2, $1);"), "(no error)");
}

TEST(RunTimeSizes, AreVerified) {
  const auto flaw = [](auto change) {
    return error_of([&] {
      Graph graph = parse(script, table());
      change(graph);
      verify(graph);
    });
  };
  EXPECT_EQ(flaw([](Graph& g) { name_size(g, g.find("w"), 0, "n"); }),
            "value 'w' (#2): size 'n' known only at run time in a value of class parameter; "
            "expected known sizes of what outlives a step");
  EXPECT_EQ(flaw([](Graph& g) { name_size(g, g.find("x"), 4, "n"); }),
            "value 'x' (#0): axis 4 of shape [64, 12, 12, 8]; expected one of its 4");
  EXPECT_EQ(flaw([](Graph& g) { name_size(g, g.find("x"), 1, "rows"); }),
            "value 'x' (#0): size 'rows' of at most 12; expected at most 64, as in value 'x' (#0)");
  EXPECT_EQ(flaw([](Graph& g) { name_size(g, g.outputs[0], 0, "n"); }),
            "value 'concat' (#11): a named size of a result; expected named sizes of declared "
            "values: others follow from these");
  EXPECT_EQ(flaw([](Graph& g) { g[g.find("x")].size_names = {"rows"}; }),
            "value 'x' (#0): names for 1 dimensions of shape [64, 12, 12, 8]; expected one for "
            "each, \"\" for sizes that are known");
  EXPECT_EQ(flaw([](Graph& g) { name_size(g, g.find("y"), 1, "height"); }), "(no error)");
}

}  // namespace
}  // namespace arenite::graph
