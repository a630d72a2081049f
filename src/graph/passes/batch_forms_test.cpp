#include "src/graph/passes/split_batch_testing.hpp"

#include <arenite/error.hpp>

namespace arenite::graph {
namespace {

using namespace testing;

TEST(BatchForms, LeavesWhatIsNotOfTheBatch) {
  // Neither the mask nor the position has a row a sample.
  const BatchGraph batch = split(R"(
    $1 = InputTensor(position, int64, [1]);
    $2 = InputTensor(mask, float32, [1, 3]);
    $3 = InputTensor(x, float32, [2, 3]);
    $4 = add($3, $2);
    $5 = sliced_softmax($4, $1);
    result = $5, $3, $2;)",
                                 4);
  EXPECT_EQ(batch.lanes.size(), 2u);
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2, 1, 1}));
  // An input is an output as a whole.
  EXPECT_EQ(batch.graph.outputs[2], batch.graph.find("x"));
}

TEST(BatchForms, TriesTheFirstAxisOfEachInput) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(weight, float32, [3, 2]);
    $2 = InputTensor(x, float32, [6, 3]);
    $3 = matmul($2, $1);
    result = $3;)",
                                 2);
  EXPECT_EQ(batch.lanes.back().begin, 3);
  EXPECT_EQ(batch.graph[batch.graph.outputs[1]].shape, (Shape{3, 2}));
}

// An axis that is as long as the batch by chance is none of its business.
TEST(BatchForms, GuessesNothingFromEqualLengths) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 4]);
    $2 = InputTensor(w, float32, [4, 4]);
    $3 = InputTensor(y, float32, [4, 4]);
    $4 = matmul($1, $2);
    $5 = add($4, $3);
    result = $5;)",
                                 2);
  expect_equal(batch.graph, R"(
    $1 = InputTensor(x, float32, [4, 4]);
    $2 = InputTensor(w, float32, [4, 4]);
    $3 = InputTensor(y, float32, [4, 4]);
    $4 = slice($1, begin=0, end=2) @lane(0) @where("x");
    $5 = matmul($4, $2) @lane(0);
    $6 = slice($3, begin=0, end=2) @lane(0) @where("y");
    $7 = add($5, $6) @lane(0);
    $8 = slice($1, begin=2, end=4) @lane(1) @where("x");
    $9 = matmul($8, $2) @lane(1);
    $10 = slice($3, begin=2, end=4) @lane(1) @where("y");
    $11 = add($9, $10) @lane(1);
    result = $7, $11;)");
}

TEST(BatchForms, CutsConstantsWhereAnOperatorDemandsIt) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = ConstantTensor(c, float32, [4, 3]);
    $3 = add($1, $2);
    result = $3;)",
                                 2);
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2}));
}

TEST(BatchForms, CutsWhatIsMadeOfInputsWhereAnOperatorDemandsIt) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 300]);
    $2 = InputTensor(target, float32, [4, 300]);
    $3 = full(shape=[], value=-1);
    $4 = mul($2, $3);
    $5 = relu($4);
    $6 = relu($1);
    $7 = add($5, $6);
    result = $7;)",
                                 2);
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2}));
}

/// Nothing at the bottom may, whatever way leads there.
TEST(BatchForms, LooksAtWhatValuesAreMadeOfOnce) {
  std::string text =
      "$1 = InputTensor(x, float32, [4, 300]); $2 = ParameterTensor(w, float32, [4, 300]);"
      "$3 = relu($1); $4 = relu($2);";
  int last = 4;
  for (; last < 64; ++last)
    text += "$" + std::to_string(last + 1) + " = mul($" + std::to_string(last) + ", $" +
            std::to_string(last) + ");";
  text += "$" + std::to_string(last + 1) + " = add($3, $" + std::to_string(last) + "); result = $" +
          std::to_string(last + 1) + ";";
  EXPECT_NE(refusal(text), "");
}

// Whose first axis has a name is in that batch and no other.
TEST(BatchForms, GoesByNames) {
  const std::string body = R"(
    $3 = relu($1);
    $4 = relu($2);
    result = $3, $4;)";
  const BatchGraph one = split(R"(
    $1 @batch("rows") = InputTensor(x, float32, [4, 300]);
    $2 @batch("rows") = InputTensor(y, float32, [4, 300]);)" +
                                   body,
                               2);
  EXPECT_EQ(one.pieces, (std::vector<std::size_t>{2, 2}));
  const BatchGraph other = split(R"(
    $1 @batch("rows") = InputTensor(x, float32, [4, 300]);
    $2 @batch("columns") = InputTensor(y, float32, [4, 3]);)" +
                                     body,
                                 2);
  EXPECT_EQ(other.pieces, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(refusal(R"(
    $1 @batch("rows") = InputTensor(x, float32, [4, 3]);
    $2 @batch("columns") = InputTensor(y, float32, [4, 3]);
    $3 = add($1, $2) @where("both");
    result = $3;)"),
            "batch 'rows': add 'both' cannot work on a share of 4 samples: it sees all 4 samples "
            "of its operand 'a' at once");
}

TEST(BatchForms, TakesNoRowsOfAResultThatHasOthers) {
  EXPECT_EQ(refusal(R"(
    $1 @batch("N") = InputTensor(x, float32, [1, 4]);
    $2 = broadcast_to($1, [5, 4]) @where("wide");
    result = $2;)"),
            "batch 'N': broadcast_to 'wide' cannot work on a share of 1 sample: it sees the "
            "sample of its operand 'x' at once");
}

TEST(BatchForms, RefusesSharesOfOtherShapesThanTheOperatorSays) {
  OperatorTable table;
  for (const std::string& name : operators().names()) {
    if (name != "relu") table.add(*operators().at(name));
  }
  OperatorDefinition wrong = *operators().at("relu");
  wrong.of_share = [](const OpView& op, const Share&) {
    return std::optional(OfShare{.results = {OfShare::Result::sum}, .attributes = op.attributes()});
  };
  table.add(wrong);
  const Graph graph = parse(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = relu($1) @where("mine");
    result = $2;)",
                            table);
  try {
    split_batch(graph, table, {.lanes = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of_share of operator 'relu' says otherwise"),
              std::string::npos)
        << error.what();
  }
}

TEST(BatchForms, SaysWhyItCannot) {
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = permute($1, [1, 0]) @where("turn");
    result = $2;)"),
            "batch 'x': permute 'turn' cannot work on a share of 4 samples: it sees all 4 samples "
            "of its operand 'x' at once");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4]);
    $2 = softmax($1) @where("row");
    result = $2;)"),
            "batch 'x': softmax 'row' cannot work on a share of 4 samples: it sees all 4 samples "
            "of its operand 'x' at once");
  EXPECT_EQ(refusal(R"(
    $1 = BufferTensor(state, float32, [4, 3]);
    $2 = InputTensor(x, float32, [4, 3]);
    $3 = InputTensor(begin, int64, [1]);
    $4 = replace_slice($1, $2, $3) @where("state");
    result = $4;)"),
            "batch 'x': replace_slice 'state' cannot work on a share of 4 samples: it sees all 4 "
            "samples of its operand 'replacement' at once: the operator has no of_share");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [1, 3]);
    $2 = relu($1);
    result = $2;)"),
            "the batch: no input of two samples or more");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    result = $1;)"),
            "batch 'x': no op works on 4 samples");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = relu($1) @lane(1) @where("mine");
    result = $2;)"),
            "the batch: relu 'mine' (lane 1) is of a lane already");
  EXPECT_EQ(
      refusal(R"(
    $1 = InputTensor(c, int64, [1]);
    $2 = InputTensor(x, float32, [4, 3]);
    $3 = if($1) { $4 = relu($2); yield $4; } else { yield $2; }
    result = $3;)"),
      "batch 'x': if #1 cannot work on a share of 4 samples: it sees all 4 samples at once in "
      "its blocks");
}

}  // namespace
}  // namespace arenite::graph
