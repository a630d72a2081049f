#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

#include <algorithm>

namespace arenite::graph {
namespace {

using List = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

constexpr std::int64_t inputs = 100, outputs = 40;

/// A dense layer of two lanes, 3 and 2 samples, with the gradients of its input and its weight, and
/// the weight's update.
struct SplitFeatures : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  ValueId weight = declare("w", {inputs, outputs}), bias = declare("b", {outputs});
  std::vector<std::int64_t> samples{3, 2};
  std::vector<ValueId> y, dx;
  TargetProfile target;

  SplitFeatures() { target.handover_gigabytes = 0.1; }

  ValueId declare(const std::string& name, Shape shape,
                  StorageClass cls = StorageClass::parameter) {
    return builder.declare(name, DType::float32, std::move(shape), cls);
  }
  void enter(Phase phase, int lane) {
    builder.context = {.phase = phase, .lane = lane, .where = "dense1"};
  }
  std::string numbered(const char* name, std::size_t lane) { return name + std::to_string(lane); }

  void forward(const char* op = "dense_relu", bool with_bias = true) {
    for (std::size_t lane = 0; lane < samples.size(); ++lane) {
      enter(Phase::forward, static_cast<int>(lane));
      const ValueId x = declare(numbered("x", lane), {samples[lane], inputs}, StorageClass::input);
      std::vector<ValueId> operands{builder.add1("relu", {x}), weight};
      if (with_bias) operands.push_back(bias);
      y.push_back(builder.add1(op, operands));
    }
  }
  void backward() {
    for (std::size_t lane = samples.size(); lane-- > 0;) {
      enter(Phase::backward, static_cast<int>(lane));
      dx.push_back(builder.add1("dense_grad_input", {y[lane], weight}));
    }
  }
  void update() {
    enter(Phase::update, Op::shared_lane);
    std::vector<ValueId> pairs;
    for (std::size_t lane = 0; lane < samples.size(); ++lane)
      pairs.insert(pairs.end(), {graph.find(numbered("x", lane)), y[lane]});
    builder.add("sgd", {weight, builder.add1("dense_grad_weight", pairs), declare("rate", {1})});
  }
  void whole_step() {
    forward();
    backward();
    update();
    graph.outputs = dx;
  }

  const std::vector<OpId>& ops() const { return graph[Graph::body].ops; }
  Names names() const {
    Names all;
    for (OpId id : ops()) all.emplace_back(graph[id].name());
    return all;
  }
  std::vector<const Op*> all(std::string_view name, Phase phase) const {
    std::vector<const Op*> found;
    for (OpId id : ops()) {
      if (graph[id].name() == name && graph[id].phase == phase) found.push_back(&graph[id]);
    }
    return found;
  }
  void expect_unchanged() {
    const Graph before = graph;
    EXPECT_EQ(split_features(graph, operators(), target), 0);
    EXPECT_TRUE(equal(graph, before));
  }
};

TEST_F(SplitFeatures, GivesEachLaneAPartOfTheWeight) {
  whole_step();
  EXPECT_EQ(split_features(graph, operators(), target), 1);
  const Names part{"stack_columns", "slice", "dense"},
      back{"stack_columns", "slice", "dense_grad_input"},
      rest{"slice", "slice", "sum", "bias", "relu"};
  Names expected{"relu", "relu"};
  for (const Names& more : {part, part, rest, rest, back, back, Names{"join_columns"},
                            Names{"join_columns"}, Names{"dense_grad_weight", "sgd"}})
    expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(names(), expected);

  const std::vector<List> bounds{{0, 48}, {48, 100}};
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const auto stacks = all("stack_columns", phase);
    const auto products = all(phase == Phase::forward ? "dense" : "dense_grad_input", phase);
    ASSERT_EQ(stacks.size(), 2u);
    ASSERT_EQ(products.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(stacks[i]->operands.size(), 2u);
      EXPECT_EQ(stacks[i]->lane, static_cast<int>(i));
      EXPECT_EQ(stacks[i]->attributes.integers("columns"),
                phase == Phase::forward ? bounds[i] : List{});
      EXPECT_EQ(products[i]->lane, static_cast<int>(i));
      EXPECT_EQ(products[i]->where, "dense1");
      EXPECT_EQ(products[i]->operands.front(), stacks[i]->results.front());
      const Value& rows = graph[products[i]->operands[1]];
      EXPECT_EQ(graph.root(products[i]->operands[1]), graph.root(graph.find("w")));
      EXPECT_EQ(rows.offset, bounds[i][0] * outputs * 4);
      EXPECT_EQ(rows.shape, Shape({bounds[i][1] - bounds[i][0], outputs}));
    }
  }
  const auto joins = all("join_columns", Phase::backward);
  ASSERT_EQ(joins.size(), 2u);
  for (std::size_t lane = 0; lane < 2; ++lane) {
    EXPECT_EQ(joins[lane]->lane, static_cast<int>(lane));
    EXPECT_EQ(joins[lane]->attributes.integers("rows"), lane == 0 ? List({0, 3}) : List({3, 5}));
    EXPECT_EQ(graph[joins[lane]->results[0]].shape, Shape({samples[lane], inputs}));
  }
  EXPECT_EQ(graph.outputs, (std::vector{joins[1]->results[0], joins[0]->results[0]}));
  expect_unchanged();  // parts are not split again
}

TEST_F(SplitFeatures, WorksWithoutBiasAndReLU) {
  forward("dense", false);
  update();
  EXPECT_EQ(split_features(graph, operators(), target), 1);
  const Names part{"stack_columns", "slice", "dense"}, rest{"slice", "slice", "sum"};
  Names expected{"relu", "relu"};
  for (const Names& more : {part, part, rest, rest, Names{"dense_grad_weight", "sgd"}})
    expected.insert(expected.end(), more.begin(), more.end());
  EXPECT_EQ(names(), expected);
}

/// Lane 1's samples are what a buffer is after an addition, which has to wait until `seen`, made by
/// `see` behind lane 0's layer, has been read from it.
struct SplitFeaturesOfABuffer : SplitFeatures {
  ValueId total = declare("total", {2, inputs}, StorageClass::buffer), seen;

  template <class See>
  void step(See see) {
    enter(Phase::forward, 0);
    const ValueId x0 = declare("x0", {3, inputs}, StorageClass::input);
    const ValueId y0 = builder.add1("dense_relu", {x0, weight, bias});
    seen = see(y0);
    const ValueId sum =
        builder.add1("accumulate", {total, declare("more", {2, inputs}, StorageClass::input)});
    enter(Phase::forward, 1);
    const ValueId x1 = builder.add1("relu", {sum});
    const ValueId y1 = builder.add1("dense_relu", {x1, weight, bias});
    graph.outputs = {seen, y0, y1};
    enter(Phase::update, Op::shared_lane);
    const ValueId gradient = builder.add1("dense_grad_weight", {x0, y0, x1, y1});
    builder.add("sgd", {weight, gradient, declare("rate", {1})});
  }
};

TEST_F(SplitFeaturesOfABuffer, KeepsWhatAnOpSees) {
  step([&](ValueId) { return builder.add1("identity", {total}); });
  EXPECT_EQ(split_features(graph, operators(), target), 1);
  const Names after = names();
  const auto place = [&](std::string_view name) {
    return std::find(after.begin(), after.end(), name) - after.begin();
  };
  EXPECT_LT(place("identity"), place("accumulate"));
  EXPECT_LT(place("accumulate"), place("stack_columns"));
  EXPECT_EQ(after.back(), "sgd");
}

TEST_F(SplitFeaturesOfABuffer, LeavesLayersBetweenWhichAnOpHasToSeeTheOldValue) {
  step([&](ValueId y0) {
    const ValueId rows =
        builder.add1("slice", {y0}, {{"begin", std::int64_t{0}}, {"end", std::int64_t{2}}});
    return builder.add1("dense_grad_weight", {total, rows});
  });
  expect_unchanged();
}

/// Lane 1's layer backward, what reads of it, an update, and only then what lane 0's layer needs.
TEST_F(SplitFeatures, KeepsUpdatesBehindReadersOfOtherRows) {
  forward();
  const ValueId other = declare("other", {2 * inputs});
  const auto rows = [&](std::int64_t begin) {
    return builder.add1("slice", {other}, {{"begin", begin}, {"end", begin + inputs}});
  };
  enter(Phase::backward, 1);
  dx.push_back(builder.add1("dense_grad_input", {y[1], weight}));
  builder.add1("bias", {dx[0], rows(0)});
  enter(Phase::update, Op::shared_lane);
  builder.add("sgd", {rows(inputs), declare("gradient", {inputs}), declare("speed", {1})});
  enter(Phase::backward, 0);
  dx.push_back(builder.add1("dense_grad_input", {builder.add1("relu", {y[0]}), weight}));
  update();
  EXPECT_EQ(split_features(graph, operators(), target), 1);
  const Names after = names();
  const auto first_update = std::find(after.begin(), after.end(), "sgd");
  EXPECT_EQ(std::find(first_update, after.end(), "bias"), after.end());
}

TEST_F(SplitFeatures, LeavesAWeightThatNobodyUpdates) {
  forward();
  backward();
  expect_unchanged();
}

TEST_F(SplitFeatures, LeavesASingleLane) {
  samples = {5};
  whole_step();
  expect_unchanged();
}

TEST_F(SplitFeatures, LeavesAWeightThatOthersRead) {
  whole_step();
  enter(Phase::update, Op::shared_lane);
  builder.add("accumulate", {declare("seen", {inputs, outputs}), weight});
  expect_unchanged();
}

TEST_F(SplitFeatures, LeavesAWeightOfWhichALaneHasTwoLayers) {
  forward();
  enter(Phase::forward, 0);
  builder.add1("dense_relu", {graph.find("x0"), weight, bias});
  backward();
  update();
  expect_unchanged();
}

TEST_F(SplitFeatures, LeavesALayerThatNotAllLanesHave) {
  whole_step();
  enter(Phase::forward, 2);
  builder.add1("relu", {bias});  // a third lane
  expect_unchanged();
}

TEST_F(SplitFeatures, LeavesLayersThatDependOnEachOther) {
  enter(Phase::forward, 0);
  const ValueId x = declare("x", {3, inputs}, StorageClass::input);
  const ValueId first = builder.add1("dense_relu", {x, weight, bias});
  enter(Phase::forward, 1);
  const ValueId wide = builder.add1("join_columns", {first, first, first});
  const ValueId next = builder.add1("stack_columns", {wide}, {{"columns", List{0, inputs}}});
  const ValueId second = builder.add1("dense_relu", {next, weight, bias});
  enter(Phase::update, Op::shared_lane);
  builder.add("sgd", {weight, builder.add1("dense_grad_weight", {x, first, next, second}),
                      declare("rate", {1})});
  expect_unchanged();
}

TEST_F(SplitFeatures, LeavesAWeightThatIsSoonHandedOver) {
  whole_step();
  target.handover_gigabytes = 1;  // half of it in 8 µs
  target.meeting_microseconds = 4.1;
  expect_unchanged();
  target.meeting_microseconds = 3.9;
  EXPECT_EQ(split_features(graph, operators(), target), 1);
}

TEST_F(SplitFeatures, LeavesManySamples) {
  samples = {6, 5};  // 11 there and back, for half of 40 outputs
  whole_step();
  expect_unchanged();
}

TEST_F(SplitFeatures, RefusesAProfileThatCannotBe) {
  whole_step();
  target.handover_gigabytes = 0;
  EXPECT_THROW(split_features(graph, operators(), target), Error);
}

}  // namespace
}  // namespace arenite::graph
