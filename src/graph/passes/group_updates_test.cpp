#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"

#include <initializer_list>

namespace arenite::graph {
namespace {

using arenite::testing::error_of;

using Names = std::vector<std::string>;

struct GroupUpdates : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  ValueId rate = declare("rate", {1});

  ValueId declare(const std::string& name, Shape shape, StorageClass cls = StorageClass::buffer) {
    return builder.declare(name, DType::float32, std::move(shape), cls);
  }
  void update(ValueId weight, ValueId gradient, double decay = 0) {
    builder.context = {.phase = Phase::update, .where = graph[weight].name};
    builder.add("sgd", {weight, gradient, rate}, {{"weight_decay", decay}});
  }
  /// An update of a weight of its own.
  ValueId update(const std::string& name, Shape shape, double decay = 0) {
    const ValueId weight = declare(name, shape, StorageClass::parameter);
    update(weight, declare("d" + name, shape), decay);
    return weight;
  }
  ValueId row_sum(const std::string& name, std::int64_t rows) {
    builder.context = {.phase = Phase::backward, .where = name};
    return builder.add1("bias_grad", {declare(name, {rows, 3})});
  }
  const Op& op(std::size_t i) const { return graph[graph[Graph::body].ops.at(i)]; }
  Names names() const {
    Names all;
    for (OpId id : graph[Graph::body].ops) all.emplace_back(graph[id].name());
    return all;
  }
  std::vector<ValueId> values(std::initializer_list<const char*> list) const {
    std::vector<ValueId> found;
    for (const std::string name : list)
      found.push_back(name.empty() ? ValueId{} : graph.find(name));
    return found;
  }
  void expect_unchanged() {
    const Graph before = graph;
    EXPECT_EQ(group_updates(graph, operators()), 0);
    EXPECT_TRUE(equal(graph, before));
  }
};

TEST_F(GroupUpdates, StandsWhereTheLastOneStood) {
  update("a", {2, 3});
  builder.add("accumulate", {declare("total", {4}), declare("more", {4})});
  update("b", {5});
  builder.add("accumulate", {graph.find("total"), graph.find("more")});
  EXPECT_EQ(group_updates(graph, operators()), 1);
  ASSERT_EQ(names(), (Names{"accumulate", "multi_sgd", "accumulate"}));
  EXPECT_EQ(op(1).operands, values({"rate", "a", "da", "", "b", "db", ""}));
  EXPECT_EQ(op(1).phase, Phase::update);
  EXPECT_EQ(op(1).where, "a … b");
  expect_unchanged();
}

TEST_F(GroupUpdates, TakesVelocitiesAndAttributesAlong) {
  for (const std::string name : {"a", "b"}) {
    builder.context = {.phase = Phase::update, .where = name};
    builder.add("sgd",
                {declare(name, {2}, StorageClass::parameter), declare("d" + name, {2}), rate,
                 declare("v" + name, {2}, StorageClass::optimizer_state)},
                {{"momentum", 0.5}, {"weight_decay", 0.1}});
  }
  EXPECT_EQ(group_updates(graph, operators()), 1);
  ASSERT_EQ(names(), Names{"multi_sgd"});
  EXPECT_EQ(op(0).operands, values({"rate", "a", "da", "va", "b", "db", "vb"}));
  EXPECT_EQ(op(0).attributes.real("momentum"), 0.5);
  EXPECT_EQ(op(0).attributes.real("weight_decay"), 0.1);
}

TEST_F(GroupUpdates, MakesSumsOfFewRowsOnTheWay) {
  update(declare("a", {3}, StorageClass::parameter), row_sum("ga", 128));
  update("b", {2});
  EXPECT_EQ(group_updates(graph, operators()), 2);
  ASSERT_EQ(names(), Names{"multi_sgd"});
  EXPECT_EQ(op(0).operands, values({"rate", "a", "ga", "", "b", "db", ""}));
}

TEST_F(GroupUpdates, MakesTheSumOfALoneUpdate) {
  update(declare("a", {3}, StorageClass::parameter), row_sum("ga", 4));
  EXPECT_EQ(group_updates(graph, operators()), 1);
  EXPECT_EQ(names(), Names{"multi_sgd"});
  EXPECT_EQ(op(0).where, "a");
}

TEST_F(GroupUpdates, LeavesSumsOfManyRowsToManyThreads) {
  update(declare("a", {3}, StorageClass::parameter), row_sum("ga", 129));
  update("b", {2});
  EXPECT_EQ(group_updates(graph, operators()), 1);
  EXPECT_EQ(names(), (Names{"bias_grad", "multi_sgd"}));
}

TEST_F(GroupUpdates, LeavesSumsThatOthersSee) {
  const ValueId sum = row_sum("ga", 4);
  update(declare("a", {3}, StorageClass::parameter), sum);
  graph.outputs = {sum};
  expect_unchanged();
}

TEST_F(GroupUpdates, LeavesSumsWhoseRowsChangeBeforeTheUpdate) {
  const ValueId sum = row_sum("ga", 4);
  builder.add("accumulate", {graph.find("ga"), declare("more", {4, 3})});
  update(declare("a", {3}, StorageClass::parameter), sum);
  expect_unchanged();
}

TEST_F(GroupUpdates, EndsAGroupWhereItsRowsChange) {
  update(declare("a", {3}, StorageClass::parameter), row_sum("ga", 4));
  builder.add("accumulate", {graph.find("ga"), declare("more", {4, 3})});
  update("b", {2});
  update("c", {2});
  EXPECT_EQ(group_updates(graph, operators()), 2);
  ASSERT_EQ(names(), (Names{"multi_sgd", "accumulate", "multi_sgd"}));
  EXPECT_EQ(op(2).operands, values({"rate", "b", "db", "", "c", "dc", ""}));
}

TEST_F(GroupUpdates, EndsAGroupWhereAnUpdatedWeightIsRead) {
  const ValueId a = update("a", {2});
  builder.add1("relu", {a});
  update("b", {2});
  expect_unchanged();
}

TEST_F(GroupUpdates, EndsAGroupWhereAGradientIsOverwritten) {
  update("a", {2});
  builder.add("assign", {graph.find("da"), declare("zeros", {2})});
  update("b", {2});
  expect_unchanged();
}

TEST_F(GroupUpdates, UpdatesAWeightOnceAGroup) {
  const ValueId a = update("a", {2});
  update(a, declare("again", {2}));
  expect_unchanged();
}

TEST_F(GroupUpdates, LeavesAnUpdateByAnEarlierWeight) {
  const ValueId a = update("a", {2});
  update(declare("b", {2}, StorageClass::parameter), a);
  expect_unchanged();
}

TEST_F(GroupUpdates, KeepsDifferentRulesApart) {
  update("a", {2});
  update("b", {2}, 0.1);
  update("c", {2});
  update("d", {2}, 0.1);
  EXPECT_EQ(group_updates(graph, operators()), 2);
  ASSERT_EQ(names(), (Names{"multi_sgd", "multi_sgd"}));
  EXPECT_EQ(op(0).operands, values({"rate", "a", "da", "", "c", "dc", ""}));
  EXPECT_EQ(op(1).operands, values({"rate", "b", "db", "", "d", "dd", ""}));
  EXPECT_EQ(op(1).attributes.real("weight_decay"), 0.1);
}

TEST_F(GroupUpdates, KeepsLanesAndLearningRatesApart) {
  update("a", {2});
  builder.context = {.phase = Phase::update, .lane = 1, .where = "b"};
  builder.add("sgd", {declare("b", {2}, StorageClass::parameter), declare("db", {2}), rate});
  rate = declare("other rate", {1});
  update("c", {2});
  expect_unchanged();
}

TEST_F(GroupUpdates, LeavesLargeWeightsAndLoneOnes) {
  update("large", {256, 257});
  update("larger", {300, 300});
  update("lone", {256, 256});
  expect_unchanged();
}

TEST_F(GroupUpdates, RefusesAGraphAfterSelect) {
  update("a", {2});
  graph[graph[Graph::body].ops.front()].kernel = "plain";
  EXPECT_THROW(group_updates(graph, operators()), Error);
}

TEST_F(GroupUpdates, RefusesARuleThatNamesNoSuchOperator) {
  OperatorTable table;
  const auto nothing = [](const OpView&) { return std::vector<ResultType>{}; };
  table.add({.name = "steps",
             .operands = {{"rate"}, {.name = "w", .renews = Renews::state}, {"g"}},
             .infer = nothing,
             .does = GroupOf{.of = "step", .shared = 2, .summed = 1, .sums = "total"}});
  EXPECT_EQ(error_of([&] { group_updates(graph, table); }),
            "operator 'steps' with 3 (rate, w, g) operands, which does 'step' in groups; expected "
            "a registered operator, its shared operand and groups of the others, its attributes, "
            "and its results of each group");
}

}  // namespace
}  // namespace arenite::graph
