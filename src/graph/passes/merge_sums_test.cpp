#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/rules.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (OpId id : graph[Graph::body].ops) names.emplace_back(graph[id].name());
  return names;
}

struct MergeSums : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  int lanes = 0;

  MergeSums() { builder.context = {.phase = Phase::backward, .where = "dense1"}; }

  /// One lane's weight gradient, over samples of its own.
  ValueId lane(std::int64_t samples) {
    const std::string number = std::to_string(lanes++);
    builder.context.lane = lanes - 1;
    return builder.add1(
        "dense_grad_weight",
        {builder.declare("x" + number, DType::float32, {samples, 5}, StorageClass::buffer),
         builder.declare("g" + number, DType::float32, {samples, 3}, StorageClass::buffer)});
  }
  ValueId sum(std::vector<ValueId> terms) {
    builder.context.lane = Op::shared_lane;
    return builder.add1("sum", std::move(terms));
  }
  void expect_unchanged() {
    const Graph before = graph;
    EXPECT_EQ(merge_sums(graph, operators()), 0);
    EXPECT_TRUE(equal(graph, before));
  }
};

TEST_F(MergeSums, WritesTheGradientOfAllLanesOnce) {
  graph.outputs = {sum({lane(4), lane(4), lane(3)})};
  EXPECT_EQ(merge_sums(graph, operators()), 1);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"dense_grad_weight"}));
  const Op& op = graph[graph[Graph::body].ops.front()];
  ASSERT_EQ(op.operands.size(), 6u);
  const char* names[] = {"x0", "g0", "x1", "g1", "x2", "g2"};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(graph[op.operands[i]].name, names[i]);
  EXPECT_EQ(op.lane, Op::shared_lane);
  EXPECT_EQ(op.phase, Phase::backward);
  EXPECT_EQ(op.where, "dense1");
  EXPECT_EQ(graph[graph.outputs.front()].shape, (Shape{5, 3}));
  expect_unchanged();
}

TEST_F(MergeSums, AddsShardsInATree) {
  const BatchCut cut{.shards = 3};
  // Of one sample each.
  const auto product = [&](int shard, std::int64_t inputs, std::int64_t outputs) {
    builder.context.lane = shard;
    const auto made = [&](const std::string& name, std::int64_t count) {
      return builder.add1("relu", {builder.declare(name + std::to_string(lanes++), DType::float32,
                                                   {1, count}, StorageClass::buffer)});
    };
    const ValueId x = made("x", inputs), g = made("g", outputs);
    return builder.add1("dense_grad_weight", {x, g});
  };
  const auto shards = [&](std::int64_t inputs, std::int64_t outputs) {
    return sum(
        {product(0, inputs, outputs), product(1, inputs, outputs), product(2, inputs, outputs)});
  };
  graph.outputs = {shards(5, 3)};  // 24 floats, for 15 of the sum
  const Graph before = graph;
  Remarks remarks;
  EXPECT_EQ(merge_sums(graph, operators(), cut, true, &remarks), 0);
  EXPECT_TRUE(equal(graph, before));
  ASSERT_EQ(remarks.left.size(), 1u);
  EXPECT_EQ(remarks.left[0].why, "it adds shards, and would keep 96 bytes of all of them");

  graph.outputs = {shards(9, 9)};
  EXPECT_EQ(merge_sums(graph, operators(), cut, false), 0);
  EXPECT_EQ(merge_sums(graph, operators(), cut), 1);
  const Op& merged = graph[graph[graph.outputs[0]].producer];
  EXPECT_EQ(merged.name(), "dense_grad_weight");
  EXPECT_EQ(merged.operands.size(), 6u);
  EXPECT_EQ(merged.attributes.integer("tree"), 1);
}

TEST_F(MergeSums, LeavesTermsThatOthersRead) {
  const ValueId first = lane(2);
  graph.outputs = {sum({first, lane(2)}), first};
  expect_unchanged();
}

TEST_F(MergeSums, LeavesATermCountedTwice) {
  const ValueId only = lane(2);
  graph.outputs = {sum({only, only})};
  expect_unchanged();
}

TEST_F(MergeSums, LeavesMixedTerms) {
  const ValueId other = builder.declare("other", DType::float32, {5, 3}, StorageClass::buffer);
  graph.outputs = {sum({lane(2), other}), sum({other, lane(2)}), sum({lane(2)})};
  expect_unchanged();
}

TEST_F(MergeSums, LeavesSumsOfDeclaredValuesBesideOneThatMerges) {
  const ValueId a = builder.declare("a", DType::float32, {4}, StorageClass::buffer),
                b = builder.declare("b", DType::float32, {4}, StorageClass::buffer);
  graph.outputs = {sum({a, b}), sum({lane(2), lane(2)}), sum({b, a})};
  EXPECT_EQ(merge_sums(graph, operators()), 1);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"sum", "dense_grad_weight", "sum"}));
}

TEST_F(MergeSums, LeavesTermsOfAClassThatLasts) {
  const ValueId first = lane(2);
  graph.storage(graph[first].storage).cls = StorageClass::output;
  graph.outputs = {sum({first, lane(2)})};
  expect_unchanged();
}

TEST_F(MergeSums, KeepsNamesGivenByHand) {
  const ValueId total = sum({lane(2), lane(2)});
  const ValueId seen = builder.add1("relu", {total});
  graph[seen].name = "features";
  graph.storage(graph[seen].storage).name = "feature bytes";
  graph.outputs = {seen};
  EXPECT_EQ(merge_sums(graph, operators()), 1);
  EXPECT_EQ(graph[graph.outputs[0]].name, "features");
  EXPECT_EQ(graph.root_storage(graph.outputs[0]).name, "feature bytes");
}

TEST_F(MergeSums, RefusesAGraphAfterSelect) {
  graph.outputs = {sum({lane(2), lane(2)})};
  graph[graph[Graph::body].ops.front()].kernel = "plain";
  EXPECT_EQ(error_of([&] { merge_sums(graph, operators()); }),
            "dense_grad_weight 'dense1' (lane 0): merge_sums on a graph whose ops have kernels; "
            "expected a "
            "graph before `select`");
}

TEST_F(MergeSums, RefusesARuleThatNamesNoSuchOperator) {
  OperatorTable table;
  table.add({.name = "gg",
             .operands = {{"x"}},
             .results = {"y"},
             .infer = like_first,
             .does = SumOf{"g"}});
  EXPECT_EQ(error_of([&] { merge_sums(graph, table); }),
            "operator 'gg' with 1 (x) operands, which sums 'g'; expected one result, and any "
            "number of all the operands that a registered operator with one result has");
}

TEST_F(MergeSums, LeavesOperandsThatChangeBeforeTheSum) {
  const ValueId first = lane(2), second = lane(2);
  const ValueId more = builder.declare("more", DType::float32, {2, 5}, StorageClass::buffer);
  builder.add("accumulate", {graph.find("x0"), more});
  graph.outputs = {sum({first, second})};
  expect_unchanged();
}

}  // namespace
}  // namespace arenite::graph
