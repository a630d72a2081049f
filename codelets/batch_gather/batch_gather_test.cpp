#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::codelets::testing {
namespace {

// What stands for it, whatever the mode.
TEST(BatchGather, IsTwoDraws) {
  graph::Graph graph = graph::parse(R"(
    $1 = ConstantTensor(images, uint8, [9, 2, 2, 1]);
    $2 = ConstantTensor(labels, uint8, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 @batch("N"), $6 @batch("N") = batch_gather($1, $2, $3, $4, count=5, begin=2, scale=0.5);
    result = $5, $6;)",
                                    operators(), "test");
  graph::apply_mode(graph, operators(), graph::Mode::evaluate, 1);
  EXPECT_EQ(graph::print(graph), graph::print(graph::parse(R"(
    $1 = ConstantTensor(images, uint8, [9, 2, 2, 1]);
    $2 = ConstantTensor(labels, uint8, [9]);
    $3 = ConstantTensor(order, int32, [9]);
    $4 = InputTensor(cursor, int64, [1]);
    $5 @name("batch_gather.x") @batch("N") @storage("draw") = draw($1, $3, $4, begin=2, count=5, scale=0.5);
    $6 @name("batch_gather.y") @batch("N") @storage("draw") = draw($2, $3, $4, begin=2, count=5, type="int32");
    result = $5, $6;)",
                                                           operators(), "test")));
}

}  // namespace
}  // namespace arenite::codelets::testing
