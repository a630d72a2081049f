#include "src/graph/passes/split_batch_testing.hpp"

namespace arenite::graph {
namespace {

using namespace testing;

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
  ASSERT_EQ(batch.lanes.size(), 2u);
  EXPECT_EQ(batch.lanes[1].begin, 4);
  EXPECT_EQ(batch.lanes[1].count, 3);
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
  graph.training = Training{{.optimizer = operators().at("sgd"), .learning_rate = 0.5},
                            graph[loss].results[0],
                            {graph.find("w")}};
  const auto batch = split_batch(graph, operators(), {.lanes = 3});
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

// Who makes samples of no sample says how: a gather from further on, a constant with fewer rows.
TEST(SplitBatch, CutsWhatMakesSamples) {
  const BatchGraph batch = split(R"(
    $1 = ConstantTensor(images, uint8, [9, 2, 2, 1]);
    $2 = ConstantTensor(labels, uint8, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 @batch("N") = draw($1, $3, $4, count=5);
    $6 @batch("N") = draw($2, $3, $4, count=5, type="int32");
    $7 = full([5, 2, 2, 1], 0.5);
    $8 = mul($5, $7);
    result = $8, $6;)",
                                 2);
  expect_equal(batch.graph, R"(
    $1 = ConstantTensor(images, uint8, [9, 2, 2, 1]);
    $2 = ConstantTensor(labels, uint8, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 = draw($1, $3, $4, count=3) @lane(0);
    $6 = draw($2, $3, $4, count=3, type="int32") @lane(0);
    $7 = full([3, 2, 2, 1], 0.5) @lane(0);
    $8 = mul($5, $7) @lane(0);
    $9 = draw($1, $3, $4, count=2, begin=3) @lane(1);
    $10 = draw($2, $3, $4, count=2, begin=3, type="int32") @lane(1);
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

// Rows of float32 alone can be put together: what makes others does it once, for all samples.
TEST(SplitBatch, MakesAtOnceWhatIsNeededAsAWhole) {
  const std::string script = R"(
    $1 = InputTensor(x, float64, [4, 3]);
    $2 = ConstantTensor(w, float64, [3, 64]);
    $3 = ConstantTensor(all, float64, [2, 4]);
    $4 = relu($1) @where("once");
    $5 = matmul($4, $2);
    $6 = matmul($3, $4) @where("mix");
    $7 = relu($5);
    $8 = relu($7);
    result = $8, $6;)";
  expect_equal(split(script, 2).graph, R"(
    $1 = InputTensor(x, float64, [4, 3]);
    $2 = ConstantTensor(w, float64, [3, 64]);
    $3 = ConstantTensor(all, float64, [2, 4]);
    $4 = relu($1) @where("once");
    $5 = matmul($3, $4) @where("mix");
    $6 = slice($4, begin=0, end=2) @lane(0) @where("once");
    $7 = matmul($6, $2) @lane(0);
    $8 = relu($7) @lane(0);
    $9 = relu($8) @lane(0);
    $10 = slice($4, begin=2, end=4) @lane(1) @where("once");
    $11 = matmul($10, $2) @lane(1);
    $12 = relu($11) @lane(1);
    $13 = relu($12) @lane(1);
    result = $9, $13, $5;)");
  Remarks remarks;
  split_batch(parse(script, operators()), operators(), {.lanes = 2}, default_target(), &remarks);
  ASSERT_EQ(remarks.left.size(), 2u);
  EXPECT_EQ(remarks.left[0].why,
            "it sees all 4 samples of its operand 'x' at once: what it makes is needed as a whole");
  EXPECT_EQ(remarks.left[1].what, "matmul 'mix'");
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

}  // namespace
}  // namespace arenite::graph
