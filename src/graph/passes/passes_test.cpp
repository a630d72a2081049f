#include <arenite/error.hpp>
#include <arenite/graph/passes.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace arenite::graph {
namespace {

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (OpId id : graph[Graph::body].ops) names.emplace_back(graph[id].name());
  return names;
}

TEST(LanesOfABatch, DifferByAtMostOneAndLeaveNoneEmpty) {
  for (std::int64_t batch = 1; batch < 40; ++batch) {
    for (int lanes = 1; lanes < 9; ++lanes) {
      std::int64_t next = 0, least = batch, most = 0;
      for (const LaneRows& share : lane_rows(batch, {.lanes = lanes})) {
        EXPECT_EQ(share.begin, next);
        next += share.count;
        least = std::min(least, share.count);
        most = std::max(most, share.count);
      }
      EXPECT_EQ(next, batch);
      EXPECT_GE(least, 1);
      EXPECT_LE(most - least, 1);
    }
  }
  EXPECT_THROW(lane_rows(0, {}), Error);
  EXPECT_THROW(lane_rows(4, {.lanes = 0}), Error);
}

struct Fixture : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};

  ValueId declare(const std::string& name, Shape shape, StorageClass cls,
                  DType type = DType::float32) {
    return builder.declare(name, type, std::move(shape), cls);
  }
  ValueId loss_of(ValueId logits, ValueId labels, std::int64_t divisor) {
    return builder.add("softmax_cross_entropy", {logits, labels}, {{"divisor", divisor}}).front();
  }
};

struct Gradients : Fixture {};

TEST_F(Gradients, SumContributionsOfEveryUse) {
  const ValueId x = declare("x", {4, 8}, StorageClass::input);
  const ValueId y = declare("y", {4}, StorageClass::input, DType::int32);
  const ValueId w = declare("w", {8, 8}, StorageClass::parameter);
  const ValueId h = builder.add1("dense", {builder.add1("dense", {x, w}), w});  // w twice
  const ValueId twice = builder.add1("sum", {h, h});  // x + x counts twice
  const auto gradients = add_gradients(builder, {loss_of(twice, y, 4)}, {w});
  ASSERT_TRUE(gradients.front());
  const auto names = op_names(graph);
  EXPECT_EQ(std::count(names.begin(), names.end(), "sum"),
            3);  // forward, both slots of x + x, both uses of w
  EXPECT_EQ(std::count(names.begin(), names.end(), "dense_grad_weight"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "dense_grad_input"), 1);  // x wants none
}

TEST_F(Gradients, AreAbsentWhereNoLossDepends) {
  const ValueId x = declare("x", {4, 8}, StorageClass::input);
  const ValueId y = declare("y", {4}, StorageClass::input, DType::int32);
  const ValueId w = declare("w", {8, 8}, StorageClass::parameter);
  const ValueId unused = declare("unused", {8, 8}, StorageClass::parameter);
  builder.add1("dense", {x, unused});
  std::vector<std::size_t> done;
  const auto gradients =
      add_gradients(builder, {loss_of(builder.add1("dense", {x, w}), y, 4)}, {unused, w},
                    [&](std::size_t i, ValueId) { done.push_back(i); });
  EXPECT_FALSE(gradients[0]);
  EXPECT_TRUE(gradients[1]);
  EXPECT_EQ(done, std::vector<std::size_t>{1});
}

TEST_F(Gradients, AreAnnouncedAfterTheLastReaderOfTheParameter) {
  const ValueId x = declare("x", {4, 8}, StorageClass::input);
  const ValueId y = declare("y", {4}, StorageClass::input, DType::int32);
  std::vector<ValueId> w;
  ValueId h = x;
  for (int i = 0; i < 3; ++i) {
    w.push_back(declare("w" + std::to_string(i), {8, 8}, StorageClass::parameter));
    h = builder.add1("dense", {h, w.back()});
  }
  std::map<std::size_t, std::size_t> ops_when_done;
  std::vector<std::size_t> order;
  add_gradients(builder, {loss_of(h, y, 4)}, w, [&](std::size_t i, ValueId) {
    ops_when_done[i] = graph[Graph::body].ops.size();
    order.push_back(i);
  });
  EXPECT_EQ(order,
            (std::vector<std::size_t>{2, 1, 0}));  // the last layer's first: updates run early
  for (const auto& [i, count] : ops_when_done) {
    for (std::size_t at = count; at < graph[Graph::body].ops.size(); ++at) {
      const Op& op = graph[graph[Graph::body].ops[at]];
      EXPECT_EQ(std::count(op.operands.begin(), op.operands.end(), w[i]), 0);
    }
  }
}

TEST_F(Gradients, NameTheOperatorThatHasNone) {
  const ValueId x = declare("x", {4, 8}, StorageClass::input);
  const ValueId w = declare("w", {4, 8}, StorageClass::parameter);
  OperatorTable table;
  table.add(
      {.name = "opaque", .operands = {{"x"}, {"w"}}, .results = {"y"}, .infer = [](const OpView&) {
         return std::vector<ResultType>{{DType::float32, Shape{1}}};
       }});
  Builder own(graph, table);
  own.context.where = "layer1";
  const ValueId loss = own.add1("opaque", {x, w});
  try {
    add_gradients(own, {loss}, {w});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "opaque 'layer1': an operator without a gradient on the way from a parameter to "
                 "the loss; expected "
                 "an operator whose definition has a `gradient` function");
  }
}

TEST_F(Gradients, NameTheOpWhoseRuleRefuses) {
  const ValueId w = declare("w", {1}, StorageClass::parameter);
  OperatorTable table;
  table.add({.name = "strict",
             .operands = {{"x"}},
             .results = {"y"},
             .infer =
                 [](const OpView&) {
                   return std::vector<ResultType>{{DType::float32, {1}}};
                 },
             .gradient = [](GradientContext&) { fail({.found = "one", .expected = "another"}); }});
  Builder own(graph, table);
  const ValueId loss = own.add1("strict", {w});
  try {
    add_gradients(own, {loss}, {w});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "strict #0: one; expected another");
  }
}

/// A block reads the parameter; no operand does.
TEST_F(Gradients, ReachWhatLoopsRead) {
  const ValueId x = declare("x", {4, 8}, StorageClass::input);
  const ValueId y = declare("y", {4}, StorageClass::input, DType::int32);
  const ValueId w = declare("w", {8, 8}, StorageClass::parameter);
  const Attributes trips{{"max_trips", std::int64_t{3}}};
  const RegionId body = builder.begin_region("loop", {{}, {}, x}, trips);
  builder.end_region({builder.add1("dense", {graph[body].parameters[1], w})});
  const ValueId h = builder.add("loop", {{}, {}, x}, trips, {body}).front();
  const auto gradients = add_gradients(builder, {loss_of(h, y, 4)}, {w});
  ASSERT_TRUE(gradients.front());
  EXPECT_EQ(graph[gradients.front()].shape, (Shape{8, 8}));
  const auto names = op_names(graph);
  EXPECT_EQ(std::count(names.begin(), names.end(), "loop"), 2);
}

struct InPlace : Fixture {
  ValueId x = declare("x", {4, 8}, StorageClass::input);
  ValueId w = declare("w", {8, 8}, StorageClass::parameter);
  ValueId h = builder.add1("dense", {x, w});
};

TEST_F(InPlace, OverwritesAnOperandWithoutLaterReaders) {
  const ValueId r = builder.add1("relu", {h});
  EXPECT_EQ(in_place(graph), 1);
  EXPECT_EQ(graph.root(r), graph.root(h));
}

TEST_F(InPlace, SparesASecondReader) {
  builder.add1("relu", {h});
  builder.add1("dense", {h, w});
  EXPECT_EQ(in_place(graph), 0);
}

TEST_F(InPlace, SparesInputsParametersAndOutputs) {
  builder.add1("relu", {x});
  builder.add1("relu", {w});
  graph.outputs = {h};
  builder.add1("relu", {h});
  EXPECT_EQ(in_place(graph), 0);
}

TEST_F(InPlace, OverwritesAnyOperandThatTheOperatorAllows) {
  const ValueId r = builder.add1("relu", {h});
  const ValueId sum = builder.add1("add", {declare("y", {4, 8}, StorageClass::input), r});
  builder.add1("mul", {declare("z", {4, 8}, StorageClass::input),
                       declare("row", {1, 8}, StorageClass::input)});
  EXPECT_EQ(in_place(graph), 2);
  EXPECT_EQ(graph.root(sum), graph.root(h));
}

TEST_F(InPlace, OverwritesAnOperandForEachResult) {
  const auto other = builder.add1("dense", {x, w});
  const auto made =
      builder.add("map", {h, other, x}, {{"expression", "yield $1 + $2, $1 - $2, $3"}});
  EXPECT_EQ(in_place(graph), 2);
  EXPECT_EQ(graph.root(made[0]), graph.root(h));
  EXPECT_EQ(graph.root(made[1]), graph.root(other));
}

TEST_F(InPlace, SparesAnOperandThatIsRepeated) {
  const ValueId row = builder.add1("relu", {declare("row", {1, 8}, StorageClass::input)});
  builder.add1("add", {x, row});
  EXPECT_EQ(in_place(graph), 0);
}

TEST_F(InPlace, MakesAnOutputOfWhatLiesInItsBytes) {
  const ValueId r = builder.add1("relu", {h}), s = builder.add1("silu", {r});
  graph.outputs = {s};
  EXPECT_EQ(in_place(graph), 2);
  EXPECT_EQ(graph.root(h), graph[s].storage);
  EXPECT_EQ(graph.root(r), graph[s].storage);
}

TEST_F(InPlace, KeepsTwoOutputsApart) {
  const ValueId r = builder.add1("relu", {h}), s = builder.add1("silu", {r});
  graph.outputs = {r, s};
  EXPECT_EQ(in_place(graph), 1);
  EXPECT_EQ(graph.root(h), graph[r].storage);
  EXPECT_NE(graph.root(s), graph.root(r));
}

TEST_F(InPlace, SparesWhatBackwardStillReads) {
  const ValueId y = declare("y", {4}, StorageClass::input, DType::int32);
  const ValueId again = builder.add1("dense", {h, w});  // saves h for the gradient of w
  const ValueId r = builder.add1("relu", {h});          // no forward op reads h after it
  const ValueId loss = loss_of(builder.add1("sum", {r, again}), y, 4);
  add_gradients(builder, {loss}, {w});
  const auto names = op_names(graph);
  ASSERT_EQ(std::count(names.begin(), names.end(), "dense_grad_weight"), 2);
  in_place(graph);
  EXPECT_NE(graph.root(r), graph.root(h));
}

TEST_F(InPlace, SparesAResultOfClassOutput) {
  const ValueId r = builder.add1("relu", {h});
  graph.storage(graph[r].storage).cls = StorageClass::output;
  EXPECT_EQ(in_place(graph), 0);
  EXPECT_EQ(graph.root_storage(r).cls, StorageClass::output);
}

TEST_F(InPlace, SparesAnOperandOfALaterViewThatNobodyReads) {
  builder.add1("relu", {h});
  builder.add1("flatten", {h});
  EXPECT_EQ(in_place(graph), 0);
}

TEST_F(InPlace, SparesAnOperandOfALaterReaderOfNoBytes) {
  using Rows = std::int64_t;
  const ValueId none = builder.add1("slice", {h}, {{"begin", Rows{2}}, {"end", Rows{2}}});
  builder.add1("relu", {h});
  builder.add1("relu", {none});
  EXPECT_EQ(in_place(graph), 0);
}

TEST_F(InPlace, SparesAnOperandThatIsReadThroughAViewToo) {
  const ValueId view = builder.add1("flatten", {h});  // the same shape, the same bytes
  const ValueId s = builder.add1("relu_grad", {h, view});
  EXPECT_EQ(in_place(graph), 0);
  EXPECT_NE(graph.root(s), graph.root(h));
}

}  // namespace
}  // namespace arenite::graph
