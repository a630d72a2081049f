#include <arenite/error.hpp>
#include <arenite/graph/sweep.hpp>

#include "src/graph/passes/split_batch_testing.hpp"

namespace arenite::graph {
namespace {

using testing::expect_equal;

const char* const network = R"(
  $1 = InputTensor(x, float32, [4, 3]);
  $2 = InputTensor(factor, float32, [1]);
  $3 = InputTensor(y, int32, [4]);
  $4 = ParameterTensor(w, float32, [3, 5]);
  $5 = mul($1, $2);
  $6 = dense($5, $4);
  $7, $8, $9 = softmax_cross_entropy($6, $3);
  train($7, optimizer=sgd, learning_rate=0.5);
  result = $7, $8;)";

Graph of(const std::string& script, const Sweep& sweep) {
  return swept(parse(script, operators()), operators(), sweep);
}

const Sweep both{.inputs = {{"x", "images", DType::uint8, 0.5}, {"y", "labels", DType::int64}},
                 .samples = 9};

// What is drawn comes first, runs a step ahead, and has the batch; what is no sample stays an
// input. What comes out is added up.
TEST(Sweep, DrawsInputsAndAddsUpOutputs) {
  const Graph graph = of(network, both);
  expect_equal(graph, R"(
    $1 = ConstantTensor(images, uint8, [9, 3]);
    $2 = ConstantTensor(labels, int64, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 @batch("N") @class(input) = draw($1, $3, $4, count=4, scale=0.5) @where("batch");
    $6 @batch("N") @class(input) = draw($2, $3, $4, count=4, type="int32") @where("batch");
    $7 = InputTensor(factor, float32, [1]);
    $8 = ParameterTensor(w, float32, [3, 5]);
    $9 = mul($5, $7);
    $10 = dense($9, $8);
    $11, $12, $13 = softmax_cross_entropy($10, $6);
    $14 = BufferTensor(softmax_cross_entropy.loss, float32, [1]);
    accumulate($14, $11) @where("softmax_cross_entropy.loss");
    $16 = BufferTensor(softmax_cross_entropy.statistics, float64, [2]);
    accumulate($16, $12) @where("softmax_cross_entropy.statistics");
    train($11, optimizer=sgd, learning_rate=0.5, parameters=[$8]);
    result = _;)");
}

// A device that has the data is sent which samples, and draws them itself.
TEST(Sweep, DrawsOnDevicesFromWhatIsChosen) {
  Sweep sweep = both;
  sweep.first = "first";
  sweep.inputs.pop_back();
  const Graph graph = of(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = relu($1);
    $3 = sum($2, $2);
    result = $3;)",
                         sweep);
  expect_equal(graph, R"(
    $1 = ConstantTensor(images, uint8, [9, 3]);
    $2 = ConstantTensor(order, int32, [9]);
    $3 = InputTensor(cursor, int64, [1]);
    $4 = ConstantTensor(first, int64, [1]);
    $5 @batch("N") @class(input) = dynamic_slice($2, $3, rows=4) @where("batch");
    $6 = draw($1, $5, $4, count=4, scale=0.5) @where("batch");
    $7 = relu($6);
    $8 = sum($7, $7);
    $9 = BufferTensor(sum, float32, [4, 3]);
    accumulate($9, $8) @where("sum");
    result = _;)");
}

// Or it is kept, each sample in the row of its place in the order.
TEST(Sweep, KeepsRowsOfOutputs) {
  Sweep sweep = both;
  sweep.rows = "predict/rows";
  const Graph graph = of(R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = InputTensor(y, int32, [4]);
    $3 = relu($1);
    result = $3;)",
                         sweep);
  expect_equal(graph, R"(
    $1 = ConstantTensor(images, uint8, [9, 3]);
    $2 = ConstantTensor(labels, int64, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 @batch("N") @class(input) = draw($1, $3, $4, count=4, scale=0.5) @where("batch");
    $6 @batch("N") @class(input) = draw($2, $3, $4, count=4, type="int32") @where("batch");
    $7 = relu($5);
    $8 = BufferTensor(predict/rows, float32, [9, 3]);
    replace_slice($8, $7, $4) @where("relu");
    result = _;)");
}

std::string refusal(const Sweep& sweep, const char* script = network) {
  try {
    of(script, sweep);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

TEST(Sweep, RefusesWhatItCannotDraw) {
  EXPECT_EQ(refusal({.samples = 9}),
            "a sweep over no data; expected samples for one input or more");
  EXPECT_EQ(refusal({.inputs = {{"z", "data"}}, .samples = 9}),
            "samples for an unknown input 'z'; expected x, factor, y");
  EXPECT_EQ(refusal({.inputs = {{"x", "data"}, {"factor", "factors"}}, .samples = 9}),
            "samples for input 'factor' [1]; expected an input of the batch of 4");
  EXPECT_EQ(
      refusal({.inputs = {{"y", "labels", DType::float32}}, .samples = 9}),
      "draw 'batch': operand 'data' (labels) of type float32 drawn as int32; expected float32 "
      "or float64, or a data set of integers");
  Sweep rows = both;
  rows.rows = "rows";
  EXPECT_EQ(refusal(rows),
            "rows of output 'softmax_cross_entropy.loss' [1]; expected [4, …], one "
            "for each sample");
  EXPECT_EQ(
      refusal({.inputs = {{"x", "data"}}, .samples = 3}),
      "draw 'batch': begin=0 and count=4 in an order of 3 entries; expected a batch no longer "
      "than the order");
}

}  // namespace
}  // namespace arenite::graph
