#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <string>

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

const std::string declarations = R"(
  $1 = BufferTensor(state, float32, [4, 3]);
  $2 = InputTensor(rows, float32, [2, 3]);
  $3 = InputTensor(begin, int64, [1]);
)";

/// Expects that the pass makes the second script of the first.
void expect_kept(const std::string& before, const std::string& after, int kept) {
  Graph graph = parse(declarations + before, operators());
  EXPECT_EQ(keep_state(graph, operators()), kept);
  std::string why;
  EXPECT_TRUE(equal(graph, parse(declarations + after, operators()), &why)) << why << '\n'
                                                                            << print(graph);
}

TEST(KeepState, AssignsANewVersionBehindAllElse) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = relu($1);
    result = $5, $4;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = relu($1);
    $90 @in($1) = assign($1, $4);
    result = $5, $4;)",
              1);
}

TEST(KeepState, WritesTheBufferWhereNobodySeesTheOldVersionLater) {
  expect_kept(R"(
    $4 = relu($1);
    $5 = replace_slice($1, $2, $3);
    $6 = relu($5);
    result = $4, $6, $5;)",
              R"(
    $4 = relu($1);
    $5 @in($1) = replace_slice($1, $2, $3);
    $6 = relu($5);
    result = $4, $6, $5;)",
              1);
}

TEST(KeepState, WritesChainsOfVersionsInPlace) {
  expect_kept(R"(
    $4 = index_sum($3, offset=2);
    $5 = replace_slice($1, $2, $3, $4);
    $6 = replace_slice($5, $2, $3);
    $7 = replace_slice($6, $2, $3);
    result = $7;)",
              R"(
    $4 = index_sum($3, offset=2);
    $5 @in($1) = replace_slice($1, $2, $3, $4);
    $6 @in($1) = replace_slice($5, $2, $3);
    $7 @in($1) = replace_slice($6, $2, $3);
    result = $7;)",
              3);
}

TEST(KeepState, AssignsTheLastVersionAlone) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = replace_slice($4, $2, $3);
    result = $1;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = replace_slice($4, $2, $3);
    $6 = identity($1);
    $90 @in($1) = assign($1, $5);
    result = $6;)",
              1);
}

// A caller wants the first version, so that the second has bytes of its own.
TEST(KeepState, CopiesAnOutputThatIsAVersionInPlace) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = replace_slice($4, $2, $3);
    result = $4;)",
              R"(
    $4 @in($1) = replace_slice($1, $2, $3);
    $5 = replace_slice($4, $2, $3);
    $6 = identity($4);
    $90 @in($1) = assign($4, $5);
    result = $6;)",
              2);
}

TEST(KeepState, WritesViewsAndViewsOfVersions) {
  expect_kept(R"(
    $4 = reshape($1, [12]);
    $5 = slice($4, 0, 6);
    $6 = slice($4, 6, 12);
    $7 = reshape($2, [6]);
    $8 = replace_slice($5, $7, $3);
    $9 = replace_slice($6, $7, $3);
    $10 = slice($9, 2, 4);
    $11 = slice($7, 0, 1);
    $12 = replace_slice($10, $11, $3);
    result = $8, $12;)",
              R"(
    $4 = reshape($1, [12]);
    $5 = slice($4, 0, 6);
    $6 = slice($4, 6, 12);
    $7 = reshape($2, [6]);
    $11 = slice($7, 0, 1);
    $8 @in($1) = replace_slice($5, $7, $3);
    $9 @offset(24) @in($1) = replace_slice($6, $7, $3);
    $10 = slice($9, 2, 4);
    $12 @offset(32) @in($1) = replace_slice($10, $11, $3);
    result = $8, $12;)",
              3);
}

// Behind the first one, others of the buffer's rows are read.
TEST(KeepState, LooksAtTheBytesThatAreRead) {
  expect_kept(R"(
    $4 = slice($1, 0, 2);
    $5 = replace_slice($4, $2, $3);
    $6 = slice($1, 2, 4);
    $7 = relu($6);
    $8 = replace_slice($6, $2, $3);
    $9 = slice($1, 1, 3);
    result = $5, $7, $8;)",
              R"(
    $4 = slice($1, 0, 2);
    $6 = slice($1, 2, 4);
    $9 = slice($1, 1, 3);
    $5 @in($1) = replace_slice($4, $2, $3);
    $7 = relu($6);
    $8 @offset(24) @in($1) = replace_slice($6, $2, $3);
    result = $5, $7, $8;)",
              2);
  expect_kept(R"(
    $4 = slice($1, 0, 2);
    $5 = replace_slice($4, $2, $3);
    $6 = slice($1, 1, 3);
    $7 = relu($6);
    result = $5, $7;)",
              R"(
    $4 = slice($1, 0, 2);
    $5 = replace_slice($4, $2, $3);
    $6 = slice($1, 1, 3);
    $7 = relu($6);
    $90 @in($1) = assign($4, $5);
    result = $5, $7;)",
              1);
}

TEST(KeepState, CopiesWhereTheRowsComeFromTheOldVersion) {
  expect_kept(R"(
    $4 = slice($1, 1, 3);
    $5 = replace_slice($1, $4, $3);
    result = $5;)",
              R"(
    $4 = slice($1, 1, 3);
    $5 = replace_slice($1, $4, $3);
    $90 @in($1) = assign($1, $5);
    result = $5;)",
              1);
}

// An optimizer's op changes weight and velocity, each on its own.
TEST(KeepState, LetsUpdatesLieInParametersAndStates) {
  const std::string more = R"(
    $4 = ParameterTensor(w, float32, [2, 3]);
    $5 = StateTensor(v, float32, [2, 3]);
    $6 = BufferTensor(rate, float32, [1]);
)";
  expect_kept(more + R"(
    $7 = relu($4);
    $8, $9 = sgd($4, $2, $6, $5, momentum=0.5) @update;
    $10 = accumulate($1, $1);
    result = $7;)",
              more + R"(
    $7 = relu($4);
    $8 @in($4), $9 @in($5) = sgd($4, $2, $6, $5, momentum=0.5) @update;
    $10 = accumulate($1, $1);
    $11 @in($1) = assign($1, $10) @update;
    result = $7;)",
              3);
  expect_kept(more + R"(
    $8, $9 = sgd($4, $2, $6, $5, momentum=0.5) @update;
    $7 = relu($4);
    result = $7;)",
              more + R"(
    $8, $9 @in($5) = sgd($4, $2, $6, $5, momentum=0.5) @update;
    $7 = relu($4);
    $10 @in($4) = assign($4, $8) @update;
    result = $7;)",
              2);
}

TEST(KeepState, CopiesWhatABlockCapturesLater) {
  const std::string block = R"(
    $5 = if($3) {
      $6 = relu(OLD);
      yield $6;
    } else {
      $7 = relu($4);
      yield $7;
    }
)";
  const auto reading = [&](const std::string& value) {
    std::string text = block;
    return text.replace(text.find("OLD"), 3, value);
  };
  expect_kept("$4 = replace_slice($1, $2, $3);" + reading("$1") + "result = $5;",
              "$4 = replace_slice($1, $2, $3);" + reading("$1") +
                  "$90 @in($1) = assign($1, $4); result = $5;",
              1);
  expect_kept("$4 = replace_slice($1, $2, $3);" + reading("$4") + "result = $5;",
              "$4 @in($1) = replace_slice($1, $2, $3);" + reading("$4") + "result = $5;", 1);
}

TEST(KeepState, AssignsToViewsOfVersions) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = slice($4, 1, 3);
    $6 = replace_slice($5, $2, $3);
    $7 = relu($1);
    result = $6, $7;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = slice($4, 1, 3);
    $6 = replace_slice($5, $2, $3);
    $7 = relu($1);
    $9 @in($1) = assign($1, $4);
    $8 = slice($9, 1, 3);
    $10 @offset(12) @in($1) = assign($8, $6);
    result = $6, $7;)",
              2);
}

TEST(KeepState, CopiesAnOutputThatIsTheOldVersion) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    result = $1;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = identity($1);
    $90 @in($1) = assign($1, $4);
    result = $5;)",
              1);
}

TEST(KeepState, LeavesVersionsToTheUpdatePhaseThatBackwardReads) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = InputTensor(gradient, float32, [4, 3]);
    $6 = relu_grad($5, $1) @backward;
    result = $4, $6;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = InputTensor(gradient, float32, [4, 3]);
    $6 = relu_grad($5, $1) @backward;
    $90 @in($1) = assign($1, $4) @update;
    result = $4, $6;)",
              1);
}

TEST(KeepState, LeavesInputsAndWhatIsMadeOfThem) {
  const std::string script = R"(
    $4 = replace_slice($2, $2, $3);
    $5 = relu($1);
    $6 = replace_slice($5, $2, $3);
    result = $4, $6;)";
  expect_kept(script, script, 0);
}

// What the parser refuses in scripts, the pass refuses in graphs of other origin.
TEST(KeepState, RefusesTwoNewVersionsOfOne) {
  Graph graph = parse(declarations + "$4 = replace_slice($1, $2, $3); result = $4;", operators());
  Builder builder(graph, operators());
  builder.context.where = "second";
  builder.add("replace_slice", graph[graph[Graph::body].ops[0]].operands);
  EXPECT_EQ(error_of([&] { keep_state(graph, operators()); }),
            "second: a second new version of 'state', which replace_slice #0 has replaced; "
            "expected one update of each version of what persists (hint: update that op's result "
            "instead)");
}

}  // namespace
}  // namespace arenite::graph
