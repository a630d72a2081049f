#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/graph/random_regions.hpp"

namespace arenite::graph {
namespace {

using testing::error_of;
using testing::table;

constexpr const char* declarations = R"($1 = InputTensor(c, int64, [1]);
$2 = InputTensor(x, float32, [64]);
$3 = InputTensor(d, int64, [1]);
)";

Graph read(const std::string& rest) { return parse(declarations + rest, table(), "net.txt"); }

std::string error(const std::string& rest) {
  return error_of([&] { read(rest); });
}

TEST(Regions, PrintWhatTheyRead) {
  const std::string script = std::string(declarations) + R"($4, $5 = if($1) @where("gate") {
  $6 = relu($2);
  $7 = if($3) {
    yield $6;
  } else {
    $8 = add($6, $2);
    yield $8;
  }
  yield $7, _;
} else {
  yield $2, $2;
}
if($1) {
  yield;
} else {
  $9 = relu($5);
  yield;
}
$10, $11 = loop($1, _, $4, $2, max_trips=8) ($12, $13 @name("state"), $14) {
  $15 = add($13, $2);
  yield $14, $15;
}
$16 = loop(_, $3, $10, max_trips=2) @backward ($17, $18) {
  yield $17, $18;
}
result = $16, $11;
)";
  const Graph graph = parse(script, table());
  EXPECT_EQ(print(graph), script);
  EXPECT_TRUE(equal(graph, parse(print(graph), table())));
}

TEST(Regions, RoundTripRandomly) {
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(300U); ++seed) {
    Graph graph = testing::RandomRegions(seed).make();
    for (const bool shared : {false, true}) {
      if (shared) in_place(graph);
      const std::string once = print(graph);
      Graph back;
      ASSERT_NO_THROW(back = parse(once, table())) << "seed " << seed << "\n" << once;
      std::string why;
      ASSERT_TRUE(equal(graph, back, &why)) << "seed " << seed << ": " << why << "\n" << once;
    }
  }
}

TEST(Regions, RefuseWhatTheirBlocksGetWrong) {
  EXPECT_EQ(error("$4 = if($2) { yield $2; } else { yield $2; } result = $4;"),
            "net.txt:4:6: if: a condition of float32[64]; expected one integer (int64, int32 or "
            "uint8): 0 is false");
  EXPECT_EQ(error("$4 = if($1) { yield $2; } else { yield; } result = $4;"),
            "net.txt:4:6: if: blocks that yield 1 and 0 values; expected as many from both (hint: "
            "a block leaves a result out with '_')");
  EXPECT_EQ(error("$4 = if($1) { yield _; } else { yield _; } result = $4;"),
            "net.txt:4:6: if: result 1, which both blocks leave out; expected at least one that "
            "yields it");
  EXPECT_EQ(error("$4 = if($1) { yield $2; } else { yield $3; } result = $4;"),
            "net.txt:4:6: if: result 1 as float32[64] and as int64[1]; expected one type and shape "
            "from both blocks");
  EXPECT_EQ(error("$4 = loop($2, _, $2, max_trips=1) ($5, $6) { yield $6; } result = $4;"),
            "net.txt:4:6: loop: trips of float32[64]; expected one int64");
  EXPECT_EQ(error("$4 = loop($1, _, $2, max_trips=0) ($5, $6) { yield $6; } result = $4;"),
            "net.txt:4:6: loop: max_trips=0; expected 1 to 2147483648");
  EXPECT_EQ(error("$4 = loop($1, $1, $2, max_trips=1) ($5, $6) { yield $6; } result = $4;"),
            "net.txt:4:6: loop: a block that yields 1 values; expected 2 (the next condition, then "
            "the carried values)");
  EXPECT_EQ(error("$4 = loop($1, _, $2, max_trips=1) ($5, $6) { yield $5; } result = $4;"),
            "net.txt:4:6: loop: carried value 1 yielded as int64[1]; expected float32[64], as it "
            "begins");
}

TEST(Regions, AreReadWithCare) {
  EXPECT_EQ(error("$4 = if($1) { yield $2; } result = $4;"),
            "net.txt:4:27: 'result'; expected 'else' and a block");
  EXPECT_EQ(error("$4 = if($1); result = $4;"),
            "net.txt:4:12: ';'; expected '{' after if(…), before its block");
  EXPECT_EQ(error("$4 = if($1) { $5 = relu($2); } result = $4;"),
            "net.txt:4:30: '}'; expected 'yield …;' (hint: a block ends by naming what it yields, "
            "or with 'yield;')");
  EXPECT_EQ(error("$4 = if($1) { $5 = InputTensor(y, float32, [1]); yield $5; }"),
            "net.txt:4:20: 'InputTensor' in a block; expected declarations outside, before the "
            "statement");
  EXPECT_EQ(error("$4 = loop($1, _, $2, max_trips=1) { yield $2; } result = $4;"),
            "net.txt:4:35: '{'; expected '(' after the call, before its block's parameters");
  EXPECT_EQ(error("$4 = loop($1, _, $2, max_trips=1) ($5) { yield $5; } result = $4;"),
            "net.txt:4:35: 1 parameters of a block of loop; expected 2");
  EXPECT_EQ(error("$4 = if($1) { yield $9; } else { $9 = relu($2); yield $9; } result = $4;"),
            "net.txt:4:21: '$9' is used before its definition in line 4; expected definitions "
            "before uses");
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += "if($1) { ";
  EXPECT_EQ(error(deep),
            "net.txt:4:577: if: a block in 64 others; expected blocks nested at most 64 deep");
}

TEST(Regions, KeepTheirScopes) {
  EXPECT_EQ(error("$4 = if($1) { $5 = relu($2); yield $5; } else { yield $5; } result = $4;"),
            "net.txt:4:6: the end of a region of if #1: reads value 'relu' (#3) outside its scope; "
            "expected values of the same region or one around it");
  EXPECT_EQ(error("$4 = if($1) { $5 = relu($2); yield $5; } else { yield $2; } result = $5;"),
            "net.txt:4:15: the caller, as an output: reads value 'relu' (#3) outside its scope; "
            "expected values of the same region or one around it");
}

TEST(Regions, HavePartialResultsWhereTheConditionHolds) {
  const std::string split =
      "$4, $5 = if($1) { $6 = relu($2); yield $6, _; } else { yield _, $2; }\n";
  EXPECT_EQ(error(split + "if($1) { $7 = relu($4); yield; } else { $8 = relu($5); yield; } "
                          "result = $2;"),
            "(no error)");
  EXPECT_EQ(error(split + "$7 = relu($4); result = $7;"),
            "net.txt:5:6: relu #2: reads value 'if.0' (#4), which if #1 has only where its block "
            "'then' ran; expected readers in such a block on the same condition");
  EXPECT_EQ(error(split + "if($1) { yield; } else { $8 = relu($4); yield; } result = $2;"),
            "net.txt:5:31: relu #2: reads value 'if.0' (#4), which if #1 has only where its block "
            "'then' ran; expected readers in such a block on the same condition");
  EXPECT_EQ(error(split + "if($3) { $8 = relu($4); yield; } else { yield; } result = $2;"),
            "net.txt:5:15: relu #2: reads value 'if.0' (#4), which if #1 has only where its block "
            "'then' ran; expected readers in such a block on the same condition");
  EXPECT_EQ(error(split + "result = $5;"),
            "net.txt:4:5: the caller, as an output: reads value 'if.1' (#5), which if #1 has only "
            "where its block 'else' ran; expected readers in such a block on the same condition");
}

/// Storage sharing that only the loop's next trip would find out about.
TEST(Regions, LoopsFindOutsideValuesAsTheyAre) {
  const std::string h = "$4 = relu($2);\n";
  EXPECT_EQ(error(h + "$5 = loop(_, _, $2, max_trips=3) ($6, $7) { $8 = add($7, $4); "
                      "$9 @in($4) = relu($8); yield $9; } result = $5;"),
            "net.txt:5:76: relu #2: takes the bytes of value 'relu' (#3) from outside loop #3; "
            "expected values that its next trip finds as they are");
  EXPECT_EQ(error(h + "$5 = loop(_, _, $4, max_trips=3) ($6, $7 @in($4)) { $8 = add($7, $4); "
                      "yield $8; } result = $5;"),
            "net.txt:5:58: add #1: reads value 'relu' (#3) after loop #2 took its bytes; expected "
            "no reader after an in-place result");
  EXPECT_EQ(
      error(h + "$5 = loop(_, _, $2, max_trips=3) ($6, $7 @in($4)) { yield $7; } result = $5;"),
      "net.txt:5:6: loop #1: parameter 'loop.carried' in the bytes of value 'relu' (#3); "
      "expected those of its first value 'x', or bytes of its own");
}

TEST(Regions, CarriedValuesLieApart) {
  EXPECT_EQ(
      error("$4 = relu($2); $5, $6 = loop(_, _, $4, $4, max_trips=3) ($7, $8 @in($4), $9 @in($4)) "
            "{ yield $8, $9; } result = $5;"),
      "net.txt:4:25: loop #1: parameters 'loop.carried' and 'loop.carried1' share bytes; "
      "expected parameters with bytes of their own");
}

std::vector<std::pair<std::string, std::string>> names(const Graph& graph,
                                                       const std::vector<Handover>& all) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const Handover& h : all)
    list.emplace_back(graph[h.from].name + (h.staged ? " (staged)" : ""), graph[h.into].name);
  return list;
}

using Names = std::vector<std::pair<std::string, std::string>>;

TEST(JoinHandovers, LeavesNothingToCopyWhereItCan) {
  Graph graph = read(
      "$4 = relu($2); $5 = loop($1, _, $4, max_trips=4) ($6, $7) { $8 = add($7, $2); "
      "yield $8; } $9 = if($1) { $10 = relu($5); yield $10; } else { $11 = add($5, "
      "$2); yield $11; } $12 = relu($9); result = $12;");
  EXPECT_GT(in_place(graph), 0);
  const auto& ops = graph[Graph::body].ops;
  const Op &loop = graph[ops[1]], &choice = graph[ops[2]];
  EXPECT_EQ(names(graph, handovers_at_entry(graph, loop)), Names{});
  EXPECT_EQ(names(graph, handovers_at_end(graph, loop, 0)), Names{});
  EXPECT_EQ(names(graph, handovers_at_exit(graph, loop)), Names{});
  EXPECT_EQ(names(graph, handovers_at_end(graph, choice, 0)), Names{});
  EXPECT_EQ(names(graph, handovers_at_end(graph, choice, 1)), Names{});
  EXPECT_EQ(graph.root(loop.results[0]), graph.root(loop.operands[2]));
}

TEST(JoinHandovers, SetsAsideWhatSwaps) {
  Graph graph = read(
      "$4, $5 = loop($1, _, $2, $2, max_trips=4) ($6, $7, $8) { yield $8, $7; } "
      "$9 = add($4, $5); result = $9;");
  in_place(graph);
  const Op& loop = graph[graph[Graph::body].ops[0]];
  EXPECT_EQ(names(graph, handovers_at_end(graph, loop, 0)),
            (Names{{"loop.carried1 (staged)", "loop.carried"},
                   {"loop.carried (staged)", "loop.carried1"}}));
  EXPECT_EQ(staging_bytes(graph, loop), 512);
  ASSERT_TRUE(loop.workspace);
  EXPECT_EQ(graph.root_storage(loop.workspace).bytes, 512);
}

TEST(JoinHandovers, KeepsWhatTheNextTripReads) {
  // The sum needs the carried value after its successor was made.
  Graph graph = read(
      "$4 = loop($1, _, $2, max_trips=4) ($6, $7) { $8 = add($2, $2); "
      "$9 = add($7, $8); $10 = add($9, $9); yield $8; } result = $4;");
  in_place(graph);
  const Op& loop = graph[graph[Graph::body].ops[0]];
  EXPECT_EQ(names(graph, handovers_at_end(graph, loop, 0)), (Names{{"add", "loop.carried"}}));
}

TEST(JoinSides, PairsEqualSizesFirst) {
  Graph graph = read(
      "$4, $5, $6, $7, $8 = if($1) { $9 = concat($2, $2); $10 = relu($2); $11 = relu($2); "
      "yield $9, $10, $11, _, _; } else { $12 = relu($2); $13 = concat($2, $2, $2); "
      "yield _, _, _, $12, $13; } result = $2;");
  EXPECT_EQ(join_sides(graph), 2);
  verify(graph);
  const Op& op = graph[graph[Graph::body].ops[0]];
  const auto root = [&](std::size_t i) { return graph.root(op.results[i]); };
  EXPECT_EQ(root(1), root(3));  // a row each
  EXPECT_EQ(root(0), root(4));  // two rows and three
  EXPECT_EQ(graph.storage(root(0)).bytes, 3 * 256);
  EXPECT_NE(root(2), root(0));
  EXPECT_NE(root(2), root(1));
  EXPECT_EQ(join_sides(graph), 0);
}

TEST(JoinSides, LeaveAloneWhatBothSidesMayNeed) {
  // Both of one side.
  for (const std::string script :
       {"$4, $5 = if($1) { $9 = relu($2); $10 = relu($9); yield $9, $10; } else { $12 = relu($2); "
        "yield $12, $12; } result = $4, $5;",
        "$4, $5 = if($1) { $9 = relu($2); $10 = relu($9); yield $9, $10; } else { yield _, _; } "
        "result = $2;"}) {
    Graph graph = read(script);
    EXPECT_EQ(join_sides(graph), 0) << script;
  }
}

// The inner else never runs. What it reads stands beside what the loop takes.
TEST(JoinSides, LeaveAloneWhatStandsInABlockOnTheSameCondition) {
  Graph graph = read(
      "$4 = if($1) { $5, $6 = if($1) { $7 = relu($2); yield $7, _; } "
      "else { $8 = relu($2); yield _, $8; } "
      "$9 = loop(_, _, $5, max_trips=2) ($10, $11) { $12 = relu($11); yield $12; } "
      "$13 = if($1) { yield $9; } else { yield $6; } yield $13; } else { yield $2; } result = $4;");
  EXPECT_NO_THROW(in_place(graph));
}

TEST(JoinSides, NobodyElseMayShareResults) {
  EXPECT_EQ(
      error("$4, $5 @in($4) = if($1) { $9 = relu($2); yield $9, $9; } else { $12 = relu($2); "
            "yield $12, $12; } result = $4;"),
      "net.txt:4:18: if #2: results 'if.0' and 'if.1' share bytes; expected results with bytes "
      "of their own");
}

}  // namespace
}  // namespace arenite::graph
