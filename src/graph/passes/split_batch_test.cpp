#include <arenite/graph/dependencies.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::graph {
namespace {

BatchGraph split(const std::string& script, int lanes) {
  std::string why;
  auto batch = split_batch(parse(script, operators()), operators(), lanes, &why);
  EXPECT_TRUE(batch) << why;
  return batch ? std::move(*batch) : BatchGraph{};
}

std::string refusal(const std::string& script) {
  std::string why = "nothing";
  EXPECT_FALSE(split_batch(parse(script, operators()), operators(), 2, &why));
  return why;
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
    $6 = slice($1, begin=4, end=7) @lane(1) @where("x");
    $7 = reshape($6, [3, 4]) @lane(1);
    $8 = matmul($5, $3) @lane(0);
    $9 = matmul($7, $3) @lane(1);
    result = $8, $9, $3;)");
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
    $9 = mul($4, $7) @lane(1);
    $10 = sum_to($8, [1, 3]) @lane(0);
    $11 = sum_to($9, [1, 3]) @lane(1);
    $12 = sum($10, $11);
    result = $8, $9, $12;)");
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

TEST(SplitBatch, SaysWhyItCannot) {
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = permute($1, [1, 0]) @where("turn");
    result = $2;)"),
            "permute 'turn' cannot work on a share of 4 samples");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4]);
    $2 = softmax($1) @where("row");
    result = $2;)"),
            "softmax 'row' cannot work on a share of 4 samples");
  EXPECT_EQ(refusal(R"(
    $1 = BufferTensor(state, float32, [4, 3]);
    $2 = InputTensor(x, float32, [4, 3]);
    $3 = InputTensor(begin, int64, [1]);
    $4 = replace_slice($1, $2, $3) @where("state");
    result = $4;)"),
            "replace_slice 'state' cannot work on a share of 4 samples");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [1, 3]);
    $2 = relu($1);
    result = $2;)"),
            "no input of two samples or more");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    result = $1;)"),
            "no op works on 4 samples");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = relu($1) @lane(1) @where("mine");
    result = $2;)"),
            "relu 'mine' (lane 1) is of a lane already");
  EXPECT_EQ(refusal(R"(
    $1 = InputTensor(c, int64, [1]);
    $2 = InputTensor(x, float32, [4, 3]);
    $3 = if($1) { $4 = relu($2); yield $4; } else { yield $2; }
    result = $3;)"),
            "a graph with blocks");
}

}  // namespace
}  // namespace arenite::graph
