#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::graph {
namespace {

using List = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

struct FuseUpdates : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  ValueId rate = declare("rate", {1});

  ValueId declare(const std::string& name, Shape shape, StorageClass cls = StorageClass::buffer) {
    return builder.declare(name, DType::float32, std::move(shape), cls);
  }
  ValueId gradient(std::int64_t rows = 300, std::int64_t outputs = 8) {
    builder.context = {.phase = Phase::backward, .where = "dense1"};
    return builder.add1("dense_grad_weight", {declare("x", {9, rows}), declare("g", {9, outputs})});
  }
  void update(ValueId gradient, bool with_velocity = true) {
    builder.context = {.phase = Phase::update, .where = "weight"};
    const Shape shape = graph[gradient].shape;
    std::vector<ValueId> operands{declare("w", shape, StorageClass::parameter), gradient, rate};
    if (with_velocity) operands.push_back(declare("v", shape, StorageClass::optimizer_state));
    builder.add("sgd", operands, {{"momentum", with_velocity ? 0.5 : 0}, {"weight_decay", 0.1}});
  }
  const Op& op(std::size_t i) const { return graph[graph[Graph::body].ops.at(i)]; }
  Names names() const {
    Names all;
    for (OpId id : graph[Graph::body].ops) all.emplace_back(graph[id].name());
    return all;
  }
  void expect_unchanged() {
    const Graph before = graph;
    EXPECT_EQ(fuse_updates(graph, operators()), 0);
    EXPECT_TRUE(equal(graph, before));
  }
};

TEST_F(FuseUpdates, MakesTheGradientInTheUpdate) {
  update(gradient());
  EXPECT_EQ(fuse_updates(graph, operators()), 1);
  ASSERT_EQ(names(), Names{"dense_grad_weight_sgd"});
  EXPECT_EQ(op(0).operands, (std::vector{graph.find("w"), graph.find("rate"), graph.find("v"),
                                         graph.find("x"), graph.find("g")}));
  EXPECT_EQ(op(0).attributes.real("momentum"), 0.5);
  EXPECT_EQ(op(0).attributes.real("weight_decay"), 0.1);
  EXPECT_TRUE(op(0).attributes.integers("rows").empty());
  EXPECT_EQ(op(0).phase, Phase::update);
  EXPECT_EQ(op(0).where, "weight");
  expect_unchanged();
}

TEST_F(FuseUpdates, KeepsTheVelocitysPlace) {
  update(gradient(), false);
  EXPECT_EQ(fuse_updates(graph, operators()), 1);
  EXPECT_EQ(op(0).operands, (std::vector{graph.find("w"), graph.find("rate"), ValueId{},
                                         graph.find("x"), graph.find("g")}));
}

TEST_F(FuseUpdates, TakesAllLanesAndParts) {
  builder.context = {.phase = Phase::backward, .where = "dense1"};
  std::vector<ValueId> lanes;
  for (int lane = 0; lane < 3; ++lane) {
    builder.context.lane = lane;
    const std::string number = std::to_string(lane);
    lanes.push_back(builder.add1("dense_grad_weight",
                                 {declare("x" + number, {4, 300}), declare("g" + number, {4, 8})}));
  }
  builder.context.lane = Op::shared_lane;
  update(builder.add1("sum", lanes));
  EXPECT_EQ(merge_sums(graph, operators()), 1);
  TargetProfile target;
  target.task_microseconds = target.microseconds({graph, op(0)}) / 7;
  EXPECT_EQ(split_rows(graph, operators(), target), 1);
  EXPECT_EQ(fuse_updates(graph, operators()), 3);
  Names expected;
  for (int i = 0; i < 3; ++i)
    expected.insert(expected.end(), {"slice", "slice", "dense_grad_weight_sgd"});
  ASSERT_EQ(names(), expected);
  const List bounds{0, 64, 192, 300};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(op(3 * i + 2).attributes.integers("rows"), (List{bounds[i], bounds[i + 1]}));
    EXPECT_EQ(op(3 * i + 2).operands.size(), 9u);
    EXPECT_EQ(op(3 * i + 2).operands[0], op(3 * i).results[0]);
    EXPECT_EQ(op(3 * i + 2).operands[2], op(3 * i + 1).results[0]);
  }
}

TEST_F(FuseUpdates, MovesTheGradientBehindWhatReadsTheWeight) {
  const ValueId g = gradient();
  builder.context = {.phase = Phase::backward, .where = "dense1"};
  builder.add1("dense_grad_input",
               {graph.find("g"), declare("later", {300, 8}, StorageClass::parameter)});
  update(g);
  EXPECT_EQ(fuse_updates(graph, operators()), 1);
  EXPECT_EQ(names(), (Names{"dense_grad_input", "dense_grad_weight_sgd"}));
}

TEST_F(FuseUpdates, LeavesAGradientThatOthersRead) {
  const ValueId g = gradient();
  update(g);
  builder.add("accumulate", {declare("copy", {300, 8}), g});
  expect_unchanged();
}

TEST_F(FuseUpdates, LeavesAnOutput) {
  graph.outputs = {gradient()};
  update(graph.outputs.front());
  expect_unchanged();
}

TEST_F(FuseUpdates, LeavesAGradientThatIsToLast) {
  const ValueId g = gradient();
  graph.storage(graph[g].storage).cls = StorageClass::buffer;
  update(g);
  expect_unchanged();
}

TEST_F(FuseUpdates, LeavesOtherGradientsAndOtherReaders) {
  builder.context = {.phase = Phase::backward, .where = "dense1"};
  const ValueId other = builder.add1("sum", {declare("a", {3, 8}), declare("b", {3, 8})});
  update(other);
  builder.context = {.phase = Phase::backward, .where = "dense2"};
  builder.add("accumulate", {declare("seen", {300, 8}), gradient()});
  expect_unchanged();
}

TEST_F(FuseUpdates, LeavesAnUpdateByAnythingElse) {
  builder.context = {.phase = Phase::update, .where = "weight"};
  update(declare("g", {300, 8}));
  expect_unchanged();
}

TEST_F(FuseUpdates, LeavesAGradientWhoseOperandsChangeBeforeTheUpdate) {
  const ValueId g = gradient();
  builder.add("accumulate", {graph.find("x"), declare("more", {9, 300})});
  update(g);
  expect_unchanged();
}

TEST_F(FuseUpdates, LeavesAGradientThatReadsWhatTheUpdateWrites) {
  builder.context = {.phase = Phase::backward, .where = "dense1"};
  const ValueId w = declare("w", {8, 8}, StorageClass::parameter);
  const ValueId g = builder.add1("dense_grad_weight", {w, declare("g", {8, 8})});
  builder.context = {.phase = Phase::update, .where = "weight"};
  builder.add("sgd", {w, g, rate});
  expect_unchanged();
}

TEST_F(FuseUpdates, RefusesAGraphWithKernels) {
  update(gradient());
  graph[graph[Graph::body].ops.front()].kernel = "plain";
  EXPECT_THROW(fuse_updates(graph, operators()), Error);
}

TEST(FuseUpdatesRules, RefusesWhatDoesNotFit) {
  OperatorTable table;
  OperatorDefinition fused;
  fused.name = "both";
  fused.does = ChainOf{{"nothing", "here"}, [](const auto&) { return Attributes{}; }};
  fused.infer = [](const OpView&) { return std::vector<ResultType>{}; };
  table.add(std::move(fused));
  Graph graph;
  try {
    fuse_updates(graph, table);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "operator 'both' fused from a chain with 'nothing'; expected a chain of registered "
              "operators");
  }
}

}  // namespace
}  // namespace arenite::graph
