#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <string>

namespace arenite::graph {
namespace {

const std::string declarations = R"(
  $1 = BufferTensor(state, float32, [4, 3]);
  $2 = InputTensor(rows, float32, [2, 3]);
  $3 = InputTensor(begin, int64, [1]);
)";

/// Expects that the pass makes the second script of the first.
void expect_kept(const std::string& before, const std::string& after, int assigned) {
  Graph graph = parse(declarations + before, operators());
  EXPECT_EQ(keep_buffers(graph, operators()), assigned);
  std::string why;
  EXPECT_TRUE(equal(graph, parse(declarations + after, operators()), &why)) << why << '\n'
                                                                            << print(graph);
}

std::string error_of(const std::string& script) {
  Graph graph = parse(declarations + script, operators());
  try {
    keep_buffers(graph, operators());
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(KeepBuffers, AssignsANewVersionBehindAllElse) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = relu($1);
    result = $5, $4;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = relu($1);
    assign($1, $4);
    result = $5, $4;)",
              1);
}

TEST(KeepBuffers, AssignsTheLastVersionAlone) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = replace_slice($4, $2, $3);
    result = $4;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = replace_slice($4, $2, $3);
    assign($1, $5);
    result = $4;)",
              1);
}

TEST(KeepBuffers, AssignsToViews) {
  expect_kept(R"(
    $4 = reshape($1, [12]);
    $5 = slice($4, 0, 6);
    $6 = slice($4, 6, 12);
    $7 = reshape($2, [6]);
    $8 = replace_slice($5, $7, $3);
    $9 = replace_slice($6, $7, $3);
    result = $8, $9;)",
              R"(
    $4 = reshape($1, [12]);
    $5 = slice($4, 0, 6);
    $6 = slice($4, 6, 12);
    $7 = reshape($2, [6]);
    $8 = replace_slice($5, $7, $3);
    $9 = replace_slice($6, $7, $3);
    assign($5, $8);
    assign($6, $9);
    result = $8, $9;)",
              2);
}

TEST(KeepBuffers, FollowsViewsOfANewVersion) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    $5 = slice($4, 1, 3);
    $6 = replace_slice($5, $2, $3);
    result = $6;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = slice($4, 1, 3);
    $6 = replace_slice($5, $2, $3);
    assign($1, $4);
    $7 = slice($1, 1, 3);
    assign($7, $6);
    result = $6;)",
              2);
}

TEST(KeepBuffers, CopiesAnOutputThatIsTheOldVersion) {
  expect_kept(R"(
    $4 = replace_slice($1, $2, $3);
    result = $1;)",
              R"(
    $4 = replace_slice($1, $2, $3);
    $5 = identity($1);
    assign($1, $4);
    result = $5;)",
              1);
}

TEST(KeepBuffers, LeavesInputsAndWhatIsMadeOfThem) {
  const std::string script = R"(
    $4 = replace_slice($2, $2, $3);
    $5 = relu($1);
    $6 = replace_slice($5, $2, $3);
    result = $4, $6;)";
  expect_kept(script, script, 0);
}

TEST(KeepBuffers, RefusesTwoNewVersionsOfOne) {
  EXPECT_EQ(
      error_of("$4 = replace_slice($1, $2, $3);\n"
               "$5 = replace_slice($1, $2, $3) @where(\"second\");\n"
               "result = $4;"),
      "second: a second new version of 'state', which replace_slice #0 has replaced; expected "
      "one update of each version of a buffer (hint: replace rows of that op's result instead)");
  EXPECT_EQ(error_of("$4 = slice($1, 0, 3);\n"
                     "$5 = slice($1, 2, 4);\n"
                     "$6 = replace_slice($4, $2, $3);\n"
                     "$7 = replace_slice($5, $2, $3);\n"
                     "result = $6;")
                .find("replace_slice #3: a second new version of"),
            0U);
}

TEST(KeepBuffers, RefusesANewVersionMadeInABlock) {
  const std::string declared = "$4 = InputTensor(choose, uint8, [1]);\n";
  EXPECT_EQ(
      error_of(declared + R"(
    $5 = if($4) {
      $6 = replace_slice($1, $2, $3);
      yield $6;
    } else {
      yield $1;
    }
    result = $5;)"),
      "replace_slice #0: a new version of buffer 'state', made in a block; expected one made "
      "outside of blocks (hint: yield the rows, and replace those of the buffer behind the block)");
}

}  // namespace
}  // namespace arenite::graph
