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

/// The same with numbers for names.
Graph written_with(const std::string& rows, const std::string& width) {
  std::string text = script;
  for (const auto& [name, size] : {std::pair{std::string("rows"), rows}, {"width", width}}) {
    for (const std::string& bound : {std::string("<=64"), std::string("<=8"), std::string()}) {
      for (std::size_t at; (at = text.find(name + bound)) != std::string::npos;)
        text.replace(at, (name + bound).size(), size);
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
