#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

using List = std::vector<std::int64_t>;

struct SplitRows : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  ValueId rate = declare("rate", {1});

  ValueId declare(const std::string& name, Shape shape, StorageClass cls = StorageClass::buffer) {
    return builder.declare(name, DType::float32, std::move(shape), cls);
  }
  ValueId gradient(std::int64_t rows, std::int64_t outputs = 8) {
    builder.context = {.phase = Phase::backward, .where = "dense1"};
    return builder.add1("dense_grad_weight", {declare("x", {9, rows}), declare("g", {9, outputs})});
  }
  /// An update of a weight of this shape, with a velocity.
  void update(ValueId gradient) {
    builder.context = {.phase = Phase::update, .where = "weight"};
    const Shape shape = graph[gradient].shape;
    builder.add("sgd",
                {declare("w", shape, StorageClass::parameter), gradient, rate,
                 declare("v", shape, StorageClass::optimizer_state)},
                {{"momentum", 0.5}, {"weight_decay", 0.1}});
  }
  const Op& op(std::size_t i) const { return graph[graph[Graph::body].ops.at(i)]; }
  /// A profile by which the first op is worth so many tasks.
  TargetProfile worth(double tasks) const {
    TargetProfile target;
    target.task_microseconds = target.microseconds({graph, op(0)}) / tasks;
    return target;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (OpId id : graph[Graph::body].ops) all.emplace_back(graph[id].name());
    return all;
  }
  /// Row ranges of the parts; none when nothing is split.
  std::vector<List> parts(double tasks) {
    Graph before = graph;
    const int pairs = split_rows(graph, operators(), worth(tasks));
    EXPECT_EQ(equal(graph, before), pairs == 0);
    std::vector<List> all;
    for (OpId id : graph[Graph::body].ops) {
      if (graph[id].name() == "dense_grad_weight" && pairs > 0)
        all.push_back(graph[id].attributes.integers("rows"));
    }
    graph = before;
    return all;
  }
  void expect_unchanged() { EXPECT_EQ(parts(1000), std::vector<List>{}); }
};

TEST_F(SplitRows, GivesEachPartItsGradientAndItsUpdate) {
  update(gradient(300));
  ASSERT_EQ(split_rows(graph, operators(), worth(7)), 1);
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i)
    expected.insert(expected.end(), {"dense_grad_weight", "slice", "slice", "sgd"});
  ASSERT_EQ(names(), expected);
  const List bounds{0, 64, 192, 300};
  for (std::size_t i = 0; i < 3; ++i) {
    const Op &weight = op(4 * i + 1), &velocity = op(4 * i + 2), &sgd = op(4 * i + 3);
    const ValueId part = op(4 * i).results[0];
    EXPECT_EQ(op(4 * i).attributes.integers("rows"), (List{bounds[i], bounds[i + 1]}));
    EXPECT_EQ(op(4 * i).phase, Phase::backward);
    EXPECT_EQ(op(4 * i).where, "dense1");
    EXPECT_EQ(graph.root_storage(part).cls, StorageClass::gradient);
    EXPECT_EQ(weight.operands, std::vector{graph.find("w")});
    EXPECT_EQ(velocity.operands, std::vector{graph.find("v")});
    for (const Op* slice : {&weight, &velocity}) {
      EXPECT_EQ(slice->attributes.integer("begin"), bounds[i]);
      EXPECT_EQ(slice->attributes.integer("end"), bounds[i + 1]);
    }
    EXPECT_EQ(sgd.operands, (std::vector{weight.results[0], part, rate, velocity.results[0]}));
    EXPECT_EQ(sgd.attributes.real("momentum"), 0.5);
    EXPECT_EQ(sgd.phase, Phase::update);
    EXPECT_EQ(sgd.where, "weight");
  }
  expect_unchanged();  // parts are not split again
}

TEST_F(SplitRows, MakesAsManyPartsAsThereIsWork) {
  update(gradient(1000));
  EXPECT_TRUE(parts(3.99).empty());
  EXPECT_EQ(parts(4.01), (std::vector<List>{{0, 512}, {512, 1000}}));
  EXPECT_EQ(parts(9.9).size(), 4u);
  const auto most = parts(1e6);
  ASSERT_EQ(most.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(most[i],
              (List{128 * static_cast<std::int64_t>(i),
                    std::min<std::int64_t>(1000, 128 * (static_cast<std::int64_t>(i) + 1))}));
}

TEST_F(SplitRows, GivesEveryLaneItsParts) {
  update(gradient(300));
  builder.context = {.phase = Phase::forward, .lane = 1};
  builder.add1("relu", {graph.find("x")});
  const Graph whole = graph;
  const auto bounds = [&](double tasks) {
    graph = whole;
    TargetProfile target = worth(tasks);
    target.meeting_microseconds = 1e9;
    std::vector<List> all;
    if (split_rows(graph, operators(), target) == 0) return all;
    for (OpId id : graph[Graph::body].ops) {
      const Op& one = graph[id];
      if (one.name() == "dense_grad_weight") all.push_back(one.attributes.integers("rows"));
      if (one.name() != "dense_grad_weight" && one.name() != "sgd") continue;
      EXPECT_EQ(one.phase, Phase::update);
      all.back().push_back(one.lane);
    }
    return all;
  };
  EXPECT_TRUE(bounds(0.9).empty());
  EXPECT_EQ(bounds(1.1), (std::vector<List>{{0, 144, 0, 0}, {144, 300, 1, 1}}));
  EXPECT_EQ(bounds(4), (std::vector<List>{
                           {0, 64, 0, 0}, {64, 144, 0, 0}, {144, 224, 1, 1}, {224, 300, 1, 1}}));
  EXPECT_EQ(bounds(1000).size(), 8u);
}

TEST_F(SplitRows, GivesManyLanesOnePartEach) {
  update(gradient(300));
  builder.context = {.phase = Phase::forward, .lane = 11};
  builder.add1("relu", {graph.find("x")});
  TargetProfile target = worth(1000);
  target.meeting_microseconds = 1e9;
  ASSERT_EQ(split_rows(graph, operators(), target), 1);
  int lane = 0;
  for (OpId id : graph[Graph::body].ops) {
    if (graph[id].name() != "sgd") continue;
    EXPECT_EQ(graph[id].lane, lane);
    ++lane;
  }
  EXPECT_EQ(lane, 12);
}

TEST_F(SplitRows, MakesNoPartOfLessThanATile) {
  update(gradient(129));
  EXPECT_EQ(parts(1000), (std::vector<List>{{0, 64}, {64, 128}, {128, 129}}));
}

TEST_F(SplitRows, LeavesASingleTile) {
  update(gradient(64));
  expect_unchanged();
}

TEST_F(SplitRows, KeepsTheOrderAroundThePair) {
  const ValueId g = gradient(300);
  builder.add("accumulate", {declare("seen", {9, 8}), graph.find("g")});
  update(g);
  builder.add("accumulate", {graph.find("w"), graph.find("v")});
  ASSERT_EQ(split_rows(graph, operators(), worth(4)), 1);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"accumulate", "dense_grad_weight", "slice", "slice", "sgd",
                                      "dense_grad_weight", "slice", "slice", "sgd", "accumulate"}));
}

TEST_F(SplitRows, LeavesAResultThatOthersRead) {
  const ValueId g = gradient(300);
  update(g);
  builder.add("accumulate", {declare("copy", {300, 8}), g});
  expect_unchanged();
}

TEST_F(SplitRows, LeavesAnOutput) {
  const ValueId g = gradient(300);
  update(g);
  graph.outputs = {g};
  expect_unchanged();
}

TEST_F(SplitRows, LeavesAStorageGivenByHand) {
  const ValueId g = gradient(300);
  update(g);
  graph.storage(graph[g].storage).cls = StorageClass::activation;
  expect_unchanged();
}

TEST_F(SplitRows, LeavesAReaderThatMixesRows) {
  const ValueId g = gradient(300);
  builder.add("accumulate", {declare("total", {300, 8}), g});
  expect_unchanged();
}

TEST_F(SplitRows, LeavesAnOpWhoseOperandsChangeBeforeTheReader) {
  const ValueId g = gradient(300);
  builder.add("accumulate", {graph.find("x"), declare("more", {9, 300})});
  update(g);
  expect_unchanged();
}

TEST_F(SplitRows, LeavesAnOpThatReadsWhatTheReaderWrites) {
  const ValueId w = declare("w", {128, 128}), v = declare("v", {128, 128});
  const ValueId g = builder.add1("dense_grad_weight", {v, w});
  builder.add("sgd", {w, g, rate});
  expect_unchanged();
}

TEST_F(SplitRows, WorksWithinASliceAndWithoutOptionalOperands) {
  const ValueId all = declare("all", {600, 8});
  const ValueId g = gradient(300);
  const ValueId w =
      builder.add1("slice", {all}, {{"begin", std::int64_t{200}}, {"end", std::int64_t{500}}});
  builder.add("sgd", {w, g, rate, ValueId{}});
  ASSERT_EQ(split_rows(graph, operators(), worth(4)), 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"slice", "dense_grad_weight", "slice", "sgd",
                                               "dense_grad_weight", "slice", "sgd"}));
  EXPECT_EQ(graph[op(5).results[0]].offset, (200 + 128) * 8 * 4);
}

}  // namespace
}  // namespace arenite::graph
