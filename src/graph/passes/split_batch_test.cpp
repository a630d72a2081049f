#include <arenite/error.hpp>
#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::graph {
namespace {

BatchGraph split(const Graph& graph, int lanes) {
  Remarks remarks;
  auto batch = split_batch(graph, operators(), lanes, default_target(), &remarks);
  EXPECT_TRUE(batch) << remarks.left.front().what << ": " << remarks.left.front().why;
  return batch ? std::move(*batch) : BatchGraph{};
}

BatchGraph split(const std::string& script, int lanes) {
  return split(parse(script, operators()), lanes);
}

/// "batch 'x': why not", of the first batch that was tried.
std::string refusal(const std::string& script) {
  Remarks remarks;
  EXPECT_FALSE(split_batch(parse(script, operators()), operators(), 2, default_target(), &remarks));
  return remarks.left.front().what + ": " + remarks.left.front().why;
}

/// With one name for all that ops make: those of a lane are called as in the whole.
Graph unnamed(Graph graph) {
  for (std::size_t i = 0; i < graph.value_count(); ++i) {
    Value& value = graph[ValueId(i)];
    if (!value.producer) continue;
    value.name = "made";
    if (!is_view_op(graph, value.producer)) graph.storage(value.storage).name = "made";
  }
  return graph;
}

void expect_equal(const Graph& graph, const std::string& script) {
  std::string why;
  EXPECT_TRUE(equal(unnamed(graph), unnamed(parse(script, operators())), &why)) << why << "\n"
                                                                                << print(graph);
}

TEST(SplitBatch, CutsInputsInRowsThatEveryLaneWorksOn) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [7, 2, 2]);
    $2 = ConstantTensor(w, float32, [4, 3]);
    $3 = relu($2);
    $4 = reshape($1, [7, 4]);
    $5 = matmul($4, $3);
    result = $5, $3;)",
                                 2);
  expect_equal(batch.graph, R"(
    $1 = InputTensor(x, float32, [7, 2, 2]);
    $2 = ConstantTensor(w, float32, [4, 3]);
    $3 = relu($2);
    $4 = slice($1, begin=0, end=4) @lane(0) @where("x");
    $5 = reshape($4, [4, 4]) @lane(0);
    $6 = matmul($5, $3) @lane(0);
    $7 = slice($1, begin=4, end=7) @lane(1) @where("x");
    $8 = reshape($7, [3, 4]) @lane(1);
    $9 = matmul($8, $3) @lane(1);
    result = $6, $9, $3;)");
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2, 1}));
  ASSERT_EQ(batch.shares.size(), 2u);
  EXPECT_EQ(batch.shares[1].begin, 4);
  EXPECT_EQ(batch.shares[1].count, 3);
  EXPECT_TRUE(batch.losses.empty());
}

TEST(SplitBatch, AddsWhatSharesAddUpToWhereItIsRead) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = sum_to($1, [1, 3]);
    $3 = relu($2);
    $4 = mul($1, $3);
    $5 = sum_to($4, [1, 3]);
    result = $4, $5;)",
                                 2);
  expect_equal(batch.graph, R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = slice($1, begin=0, end=2) @lane(0) @where("x");
    $3 = sum_to($2, [1, 3]) @lane(0);
    $4 = slice($1, begin=2, end=4) @lane(1) @where("x");
    $5 = sum_to($4, [1, 3]) @lane(1);
    $6 = sum($3, $5);
    $7 = relu($6);
    $8 = mul($2, $7) @lane(0);
    $9 = sum_to($8, [1, 3]) @lane(0);
    $10 = mul($4, $7) @lane(1);
    $11 = sum_to($10, [1, 3]) @lane(1);
    $12 = sum($9, $11);
    result = $8, $10, $12;)");
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2, 1}));
}

TEST(SplitBatch, GivesALossLaneByLane) {
  Graph graph = parse(R"(
    $1 = InputTensor(x, float32, [5, 3]);
    $2 = InputTensor(y, int32, [5]);
    $3 = ParameterTensor(w, float32, [3, 2]);
    $4 = dense($1, $3);
    $5, $6, $7 = softmax_cross_entropy($4, $2);
    result = $4;)",
                      operators());
  const OpId loss = graph[Graph::body].ops.back();
  graph.training = Training{.loss = graph[loss].results[0],
                            .optimizer = "sgd",
                            .attributes = {},
                            .learning_rate = 0.5,
                            .parameters = {graph.find("w")}};
  const auto batch = split_batch(graph, operators(), 3);
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->losses.size(), 3u);
  for (std::size_t lane = 0; lane < 3; ++lane) {
    const Op& op = batch->graph[batch->graph[batch->losses[lane]].producer];
    EXPECT_EQ(op.name(), "softmax_cross_entropy");
    EXPECT_EQ(op.lane, static_cast<int>(lane));
    EXPECT_EQ(op.attributes.integer("divisor"), 5);
  }
  ASSERT_TRUE(batch->graph.training);
  EXPECT_EQ(batch->graph.training->loss, batch->losses[0]);
  EXPECT_EQ(batch->graph.training->parameters, std::vector{batch->graph.find("w")});
}

TEST(SplitBatch, LeavesWhatIsNotOfTheBatch) {
  // Neither the mask nor the position has a row a sample.
  const BatchGraph batch = split(R"(
    $1 = InputTensor(position, int64, [1]);
    $2 = InputTensor(mask, float32, [1, 3]);
    $3 = InputTensor(x, float32, [2, 3]);
    $4 = add($3, $2);
    $5 = sliced_softmax($4, $1);
    result = $5, $3, $2;)",
                                 4);
  EXPECT_EQ(batch.shares.size(), 2u);
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2, 1, 1}));
  // An input is an output as a whole.
  EXPECT_EQ(batch.graph.outputs[2], batch.graph.find("x"));
}

TEST(SplitBatch, TriesTheFirstAxisOfEachInput) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(weight, float32, [3, 2]);
    $2 = InputTensor(x, float32, [6, 3]);
    $3 = matmul($2, $1);
    result = $3;)",
                                 2);
  EXPECT_EQ(batch.shares.back().begin, 3);
  EXPECT_EQ(batch.graph[batch.graph.outputs[1]].shape, (Shape{3, 2}));
}

// An axis that is as long as the batch by chance is none of its business.
TEST(SplitBatch, GuessesNothingFromEqualLengths) {
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

TEST(SplitBatch, CutsConstantsWhereAnOperatorDemandsIt) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = ConstantTensor(c, float32, [4, 3]);
    $3 = add($1, $2);
    result = $3;)",
                                 2);
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{2}));
}

// Whose first axis has a name is in that batch and no other.
TEST(SplitBatch, GoesByNames) {
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
            "at once");
}

// Who makes samples of no sample says how: a gather from further on, a constant with fewer rows.
TEST(SplitBatch, CutsWhatMakesSamples) {
  const BatchGraph batch = split(R"(
    $1 = ConstantTensor(images, uint8, [9, 2, 2, 1]);
    $2 = ConstantTensor(labels, uint8, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 @batch("N"), $6 @batch("N") = batch_gather($1, $2, $3, $4, count=5);
    $7 = full([5, 2, 2, 1], 0.5);
    $8 = mul($5, $7);
    result = $8, $6;)",
                                 2);
  expect_equal(batch.graph, R"(
    $1 = ConstantTensor(images, uint8, [9, 2, 2, 1]);
    $2 = ConstantTensor(labels, uint8, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5, $6 = batch_gather($1, $2, $3, $4, count=3) @lane(0);
    $7 = full([3, 2, 2, 1], 0.5) @lane(0);
    $8 = mul($5, $7) @lane(0);
    $9, $10 = batch_gather($1, $2, $3, $4, count=2, begin=3) @lane(1);
    $11 = full([2, 2, 2, 1], 0.5) @lane(1);
    $12 = mul($9, $11) @lane(1);
    result = $8, $12, $6, $10;)");
}

// What an op needs of all samples is put together from the lanes' rows; what is there from the
// start is taken as it is.
TEST(SplitBatch, PutsRowsTogetherForWhatSeesAllSamples) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 300, 2]);
    $2 = relu($1) @where("first");
    $3 = permute($2, [1, 0, 2]) @where("turn");
    $4 = relu($2);
    $5 = relu($4);
    result = $3, $5;)",
                                 2);
  expect_equal(batch.graph, R"(
    $1 = InputTensor(x, float32, [4, 300, 2]);
    $2 = slice($1, begin=0, end=2) @lane(0) @where("x");
    $3 = relu($2) @lane(0) @where("first");
    $4 = slice($1, begin=2, end=4) @lane(1) @where("x");
    $5 = relu($4) @lane(1) @where("first");
    $6 = flatten($3) @where("turn");
    $7 = flatten($5) @where("turn");
    $8 = stack_columns($6, $7) @where("turn");
    $9 = reshape($8, [4, 300, 2]) @where("turn");
    $10 = permute($9, [1, 0, 2]) @where("turn");
    $11 = relu($3) @lane(0);
    $12 = relu($11) @lane(0);
    $13 = relu($5) @lane(1);
    $14 = relu($13) @lane(1);
    result = $10, $12, $14;)");
  EXPECT_EQ(batch.pieces, (std::vector<std::size_t>{1, 2}));
}

// The batch is cut as if the op with blocks were not there, which sees what it reads as a whole.
TEST(SplitBatch, TakesAnOpWithBlocksForOne) {
  const std::string network = R"(
    $1 = InputTensor(x, float32, [4, 300]);
    $2 = InputTensor(c, int64, [1]);
    $3 = InputTensor(other, float32, [4, 300]);
    $4 = relu($1);)";
  const BatchGraph apart = split(network + R"(
    $5 = if($2) { $6 = relu($3); yield $6; } else { yield $3; }
    result = $4, $5;)",
                                 2);
  EXPECT_EQ(apart.pieces, (std::vector<std::size_t>{2, 1}));
  const BatchGraph behind = split(network + R"(
    $5 = if($2) { $6 = relu($4); yield $6; } else { yield $3; }
    $7 = relu($4);
    result = $5, $7;)",
                                  2);
  EXPECT_EQ(behind.pieces, (std::vector<std::size_t>{1, 2}));
}

// What changes something that outlives the step does so once, for all samples.
TEST(SplitBatch, WritesOnceForAllLanes) {
  const BatchGraph batch = split(R"(
    $1 = InputTensor(x, float32, [4, 300]);
    $2 = BufferTensor(mean, float32, [1, 300]);
    $3 = relu($1);
    $4 = sum_to($3, [1, 300]);
    accumulate($2, $4);
    $5 = relu($3);
    $6 = add($5, $2);
    result = $6;)",
                                 2);
  int accumulations = 0, sums = 0;
  for (const OpId id : batch.graph[Graph::body].ops) {
    accumulations += batch.graph[id].name() == "accumulate" ? 1 : 0;
    sums += batch.graph[id].name() == "sum" ? 1 : 0;
  }
  EXPECT_EQ(accumulations, 1);
  EXPECT_EQ(sums, 1);
}

TEST(SplitBatch, LeavesABatchWholeWhoseValuesAreChanged) {
  EXPECT_EQ(
      refusal(R"(
    $1 = InputTensor(x, float32, [4, 300]);
    $2 = InputTensor(y, float32, [4, 300]);
    $3 = relu($1) @where("made");
    accumulate($3, $2) @where("more");
    $4 = silu($3);
    $5 = silu($4);
    result = $5;)"),
      "batch 'x': accumulate 'more' changes 'made', which is made of samples, for all of them");
}

TEST(SplitBatch, TakesNoRowsOfAResultThatHasOthers) {
  EXPECT_EQ(refusal(R"(
    $1 @batch("N") = InputTensor(x, float32, [1, 4]);
    $2 = broadcast_to($1, [5, 4]) @where("wide");
    result = $2;)"),
            "batch 'N': broadcast_to 'wide' cannot work on a share of 1 samples: it sees all 1 "
            "samples at once");
}

TEST(SplitBatch, KeepsClassSpaceAndLayoutOfValues) {
  Graph graph = parse(R"(
    $1 = InputTensor(x, float32, [6, 4, 4, 2]);
    $2 @class(output) = relu($1);
    $3 = flatten($2);
    $4 @halo(1) = relu($1);
    result = $2, $4, $3;)",
                      operators());
  graph.storage(graph[graph.outputs[0]].storage).space.capacity = 4096;
  const BatchGraph batch = split(graph, 2);
  ASSERT_EQ(batch.graph.outputs.size(), 6u);  // two lanes' of each
  for (const std::size_t lane : {0u, 1u}) {
    const ValueId kept = batch.graph.outputs[lane], wide = batch.graph.outputs[2 + lane],
                  view = batch.graph.outputs[4 + lane];
    EXPECT_EQ(batch.graph.root_storage(kept).cls, StorageClass::output);
    EXPECT_EQ(batch.graph.root_storage(kept).space.capacity, 4096);
    EXPECT_EQ(batch.graph[wide].layout.halo, 1);
    EXPECT_EQ(batch.graph.root_storage(wide).bytes,
              byte_size(DType::float32, {3, 4, 4, 2}, {.halo = 1}));
    EXPECT_EQ(batch.graph.root(view), batch.graph.root(kept));
  }
}

TEST(SplitBatch, RefusesSharesOfOtherShapesThanTheOperatorSays) {
  OperatorTable table;
  for (const std::string& name : operators().names()) table.add(*operators().at(name));
  OperatorDefinition wrong = *operators().at("relu");
  wrong.name = "wrong";
  wrong.of_share = [](const OpView& op, const Share&) {
    return std::optional(OfShare{.results = {OfShare::Result::sum}, .attributes = op.attributes()});
  };
  table.add(wrong);
  const Graph graph = parse(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = wrong($1) @where("mine");
    result = $2;)",
                            table);
  try {
    split_batch(graph, table, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("of_share of operator 'wrong' says otherwise"),
              std::string::npos)
        << error.what();
  }
}

TEST(SplitBatch, SaysWhyItCannot) {
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = permute($1, [1, 0]) @where("turn");
    result = $2;)"),
            "batch 'x': permute 'turn' cannot work on a share of 4 samples: it sees all 4 samples "
            "at once");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4]);
    $2 = softmax($1) @where("row");
    result = $2;)"),
            "batch 'x': softmax 'row' cannot work on a share of 4 samples: it sees all 4 samples "
            "at once");
  EXPECT_EQ(refusal(R"(
    $1 = BufferTensor(state, float32, [4, 3]);
    $2 = InputTensor(x, float32, [4, 3]);
    $3 = InputTensor(begin, int64, [1]);
    $4 = replace_slice($1, $2, $3) @where("state");
    result = $4;)"),
            "batch 'x': replace_slice 'state' cannot work on a share of 4 samples: it sees all 4 "
            "samples at once: the operator has no of_share");
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
