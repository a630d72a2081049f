#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace arenite::graph {
namespace {

using Texts = std::vector<std::string>;

const std::string declarations = R"(
  $1 = BufferTensor(state, float32, [4, 3]);
  $2 = InputTensor(rows, float32, [2, 3]);
  $3 = InputTensor(begin, int64, [1]);
  $4 = ConstantTensor(table, float32, [4, 3]);
)";

/// "op: reason" of every copy.
Texts copies(const std::string& script) {
  Graph graph = parse(declarations + script, operators());
  keep_state(graph, operators());
  in_place(graph);
  Texts all;
  for (const auto& [op, reason] : inserted_copies(graph))
    all.push_back(describe(graph, op) + ": " + reason);
  return all;
}

TEST(InsertedCopies, AreNoneWhereVersionsAreInPlace) {
  EXPECT_EQ(copies("$5 = replace_slice($1, $2, $3); $6 = replace_slice($5, $2, $3); result = $6;"),
            Texts{});
  // What a step makes anew may be overwritten.
  EXPECT_EQ(copies("$5 = relu($1); $6 = replace_slice($5, $2, $3); $7 = relu($6); result = $7;"),
            Texts{});
}

TEST(InsertedCopies, NameALaterReader) {
  EXPECT_EQ(copies(R"($5 = replace_slice($1, $2, $3);
                      $6 = relu($1) @where("conv1");
                      $7 = silu($1);
                      result = $5, $6, $7;)"),
            Texts{"replace_slice #0: relu 'conv1' reads the old version later"});
  EXPECT_EQ(copies(R"($5 = relu($4);
                      $6 = replace_slice($5, $2, $3);
                      $7 = relu_grad($4, $5) @backward;
                      result = $6, $7;)"),
            Texts{"replace_slice #1: relu_grad #2 reads the old version in the backward pass, for "
                  "which it is saved"});
}

TEST(InsertedCopies, NameWhatIsNeverWritten) {
  EXPECT_EQ(
      copies(R"($5 = replace_slice($2, $2, $3);
                      $6 = slice($4, 1, 4);
                      $7 = replace_slice($6, $2, $3);
                      $8 = ParameterTensor(weight, float32, [4, 3]);
                      $9 = replace_slice($8, $2, $3);
                      result = $5, $7, $9;)"),
      (Texts{"replace_slice #0: 'rows' is an input", "replace_slice #2: 'table' is a constant",
             "replace_slice #3: 'weight' is changed by updates alone"}));
}

TEST(InsertedCopies, NameOutputs) {
  EXPECT_EQ(copies("$5 = replace_slice($1, $2, $3); result = $1;"),
            Texts{"replace_slice #0: the old version is an output"});
  EXPECT_EQ(copies("$5 = relu($1); $6 = replace_slice($5, $2, $3); result = $5;"),
            Texts{"replace_slice #1: the old version is an output"});
  EXPECT_EQ(copies("$5 = relu($1); $6 = replace_slice($5, $2, $3); result = $6;"), Texts{});
}

TEST(InsertedCopies, NameOperandsAndParts) {
  EXPECT_EQ(copies("$5 = slice($1, 2, 4); $6 = replace_slice($1, $5, $3); result = $6;"),
            Texts{"replace_slice #1: its operand 'replacement' lies in the old version"});
  EXPECT_EQ(copies(R"($5 = relu($1);
                      $6 = slice($5, 1, 4);
                      $7 = replace_slice($6, $2, $3);
                      $8 = relu($7);
                      result = $8;)"),
            Texts{"replace_slice #2: the old version is a part of 'relu'"});
}

TEST(InsertedCopies, LookIntoBlocks) {
  EXPECT_EQ(copies(R"($5 = relu($4);
                      $6 = if($3) {
                        $7 = replace_slice($5, $2, $3);
                        yield $7;
                      } else {
                        $8 = silu($4);
                        $9 = replace_slice($8, $2, $3);
                        $10 = add($8, $9);
                        yield $10;
                      }
                      result = $6;)"),
            (Texts{"replace_slice #1: the old version comes from outside of its block",
                   "replace_slice #3: add #4 reads the old version later"}));
}

}  // namespace
}  // namespace arenite::graph
