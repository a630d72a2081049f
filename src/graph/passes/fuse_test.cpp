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

using List = std::vector<std::int64_t>;

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (OpId id : graph[Graph::body].ops) names.emplace_back(graph[id].name());
  return names;
}

struct Fuse : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};
  ValueId x = builder.declare("x", DType::float32, {2, 8, 8, 3}, StorageClass::input);
  ValueId weight = builder.declare("w", DType::float32, {3, 3, 3, 4}, StorageClass::parameter);
  ValueId bias = builder.declare("b", DType::float32, {4}, StorageClass::parameter);

  ValueId conv(ValueId of, ValueId with) {
    builder.context.where = "conv1";
    return builder.add1("conv2d", {of, with, bias},
                        {{"padding", List{1, 1}}, {"stride", List{2, 1}}});
  }
  std::vector<ValueId> pool(ValueId of, Attributes attributes = {}) {
    builder.context.where = "pool1";
    return builder.add("max_pool2d", {of}, std::move(attributes));
  }
  ValueId relu(ValueId of) { return builder.add1("relu", {of}); }

  int run() { return fuse(graph, operators()); }
  void expect_unchanged() {
    const Graph before = graph;
    EXPECT_EQ(run(), 0);
    EXPECT_TRUE(equal(graph, before));
  }
  /// Pooling stays an op of its own, so many times.
  void expect_pooling_apart(int times = 1) {
    EXPECT_EQ(run(), times);
    std::vector<std::string> names;
    for (int i = 0; i < times; ++i) names.insert(names.end(), {"conv2d_relu", "max_pool2d"});
    EXPECT_EQ(op_names(graph), names);
  }
};

TEST_F(Fuse, TakesTheLongestChain) {
  const ValueId first = relu(conv(x, weight));
  const ValueId second = builder.declare("w2", DType::float32, {3, 3, 4, 4}, StorageClass::input);
  const ValueId y = relu(builder.add1("conv2d", {first, second}));
  graph.outputs = {pool(y).front()};
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"conv2d_relu", "conv2d_relu_max_pool2d"}));
  const Op& op = graph[graph[Graph::body].ops.front()];
  EXPECT_EQ(op.attributes.integers("stride"), (List{2, 1}));
  EXPECT_EQ(op.operands, (std::vector{graph.find("x"), graph.find("w"), graph.find("b")}));
}

TEST_F(Fuse, MasksTheGradientOfAConvolutionWhereItIsMade) {
  builder.context.phase = Phase::backward;
  const ValueId y = builder.declare("y", DType::float32, {2, 8, 8, 3}, StorageClass::input),
                g = builder.declare("g", DType::float32, {2, 6, 6, 4}, StorageClass::input),
                pooled = builder.declare("p", DType::float32, {2, 3, 3, 4}, StorageClass::input),
                code = builder.declare("c", DType::uint8, {2, 3, 3, 4}, StorageClass::input);
  const Attributes size{{"size", List{8, 8}}};
  graph.outputs = {
      builder.add1("relu_grad", {builder.add1("conv2d_grad_input", {g, weight}, size), y}),
      builder.add1(
          "relu_grad",
          {builder.add1("conv2d_relu_max_pool2d_grad_input", {pooled, code, weight}, size), y})};
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"conv2d_grad_input_relu",
                                                       "conv2d_relu_max_pool2d_grad_input_relu"}));
  const std::vector<OpId>& ops = graph[Graph::body].ops;
  EXPECT_EQ(graph[ops[0]].operands,
            (std::vector{graph.find("g"), graph.find("w"), graph.find("y")}));
  EXPECT_EQ(graph[ops[1]].operands,
            (std::vector{graph.find("p"), graph.find("c"), graph.find("w"), graph.find("y")}));
  EXPECT_EQ(graph[ops[0]].attributes.integers("size"), (List{8, 8}));
}

TEST_F(Fuse, ReplacesAChainByOneOp) {
  const ValueId y = pool(relu(conv(x, weight)), {{"kernel", List{2, 4}}}).front();
  graph.outputs = {relu(y)};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"conv2d_relu_max_pool2d", "relu"}));
  const Op& op = graph[graph[Graph::body].ops.front()];
  EXPECT_EQ(op.where, "conv1");
  EXPECT_EQ(op.attributes.integers("stride"), (List{2, 1}));
  EXPECT_EQ(op.attributes.integers("padding"), (List{1, 1}));
  EXPECT_EQ(op.attributes.integers("pool"), (List{2, 4}));
  ASSERT_EQ(op.operands.size(), 3u);
  EXPECT_EQ(graph[op.operands[0]].name, "x");
  EXPECT_EQ(graph[op.operands[1]].name, "w");
  EXPECT_EQ(graph[op.operands[2]].name, "b");
  EXPECT_EQ(graph[graph.outputs.front()].shape, (Shape{2, 2, 2, 4}));
  expect_unchanged();
}

TEST(FuseProducts, WithABiasThatIsARow) {
  const auto fused = [](const std::string& script) {
    Graph graph = parse(script, operators());
    fuse(graph, operators());
    return op_names(graph);
  };
  using Names = std::vector<std::string>;
  const std::string operands = R"(
    $1 = InputTensor(x, float32, [4, 3]);
    $2 = ConstantTensor(w, float32, [3, 4]);)";
  EXPECT_EQ(fused(operands + R"($3 = ConstantTensor(b, float32, [1, 4]);
    $4 = MatMulNode($1, $2); $5 = SumNode($4, $3); $6 = ReLUNode($5); result = $6;)"),
            Names{"dense_relu"});
  // Not a row; a product that others read; a product of something turned.
  EXPECT_EQ(fused(operands + R"($3 = ConstantTensor(b, float32, [4, 4]);
    $4 = matmul($1, $2); $5 = add($4, $3); result = $5;)"),
            (Names{"matmul", "add"}));
  EXPECT_EQ(fused(operands + R"($3 = ConstantTensor(b, float32, [1, 1]);
    $4 = matmul($1, $2); $5 = add($4, $3); result = $5;)"),
            (Names{"matmul", "add"}));
  EXPECT_EQ(fused(operands + R"($3 = ConstantTensor(b, float32, [1, 4]);
    $4 = matmul($1, $2); $5 = add($4, $3); result = $5, $4;)"),
            (Names{"matmul", "add"}));
  EXPECT_EQ(fused(operands + R"($3 = ConstantTensor(b, float32, [1, 3]);
    $4 = matmul($1, $1, transpose_b=1); $5 = matmul($1, $2, transpose_a=1, transpose_b=1);
    $6 = add($5, $3); result = $6, $4;)"),
            (Names{"matmul", "matmul", "add"}));
  EXPECT_EQ(fused(R"($1 = InputTensor(x, float64, [4, 3]); $2 = ConstantTensor(w, float64, [3, 4]);
    $3 = ConstantTensor(b, float64, [1, 4]);
    $4 = matmul($1, $2); $5 = add($4, $3); result = $5;)"),
            (Names{"matmul", "add"}));
}

TEST_F(Fuse, EveryChainOfAGraph) {
  const ValueId first = pool(relu(conv(x, weight))).front();
  const ValueId deeper =
      builder.declare("w2", DType::float32, {1, 1, 4, 4}, StorageClass::parameter);
  const ValueId second = pool(relu(conv(first, deeper))).front();
  graph.outputs = {second};
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>(2, "conv2d_relu_max_pool2d")));
}

TEST_F(Fuse, OutputsOfTheChainsEndFollow) {
  graph.outputs = {pool(relu(conv(x, weight))).front()};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(graph[graph.outputs.front()].producer, graph[Graph::body].ops.front());
}

TEST_F(Fuse, LeavesWhatOthersRead) {
  const ValueId between = conv(x, weight);
  graph.outputs = {pool(relu(between)).front(), relu(between)};
  expect_unchanged();
}

TEST_F(Fuse, LeavesIntermediateOutputs) {
  const ValueId between = relu(conv(x, weight));
  graph.outputs = {pool(between).front(), between};
  expect_pooling_apart();
}

TEST_F(Fuse, LeavesCodesThatOthersRead) {
  graph.outputs = {pool(relu(conv(x, weight))).at(1)};
  expect_pooling_apart();
}

TEST_F(Fuse, LeavesOverlappingAndPaddedWindows) {
  graph.outputs = {
      pool(relu(conv(x, weight)), {{"kernel", List{3, 3}}, {"stride", List{2, 2}}}).front(),
      pool(relu(conv(x, weight)), {{"padding", List{1, 1}}}).front()};
  expect_pooling_apart(2);
}

TEST_F(Fuse, LeavesAnotherOrder) {
  graph.outputs = {relu(pool(conv(x, weight)).front())};
  expect_unchanged();
}

TEST_F(Fuse, StandsBeforeAChangeOfTheWeight) {
  const auto buffer = [&](const std::string& name) {
    return builder.declare(name, DType::float32, {3, 3, 3, 4}, StorageClass::buffer);
  };
  const ValueId changing = buffer("changing"), between = conv(x, changing);
  builder.add("accumulate", {changing, buffer("g")});
  graph.outputs = {pool(relu(between)).front()};
  EXPECT_EQ(run(), 1);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"conv2d_relu_max_pool2d", "accumulate"}));
}

TEST_F(Fuse, KeepsPhasesApart) {
  const ValueId between = conv(x, weight);
  builder.context.phase = Phase::evaluate;
  graph.outputs = {pool(relu(between)).front()};
  expect_unchanged();
}

TEST_F(Fuse, LeavesIntermediatesOfAClassThatLasts) {
  const ValueId between = relu(conv(x, weight));
  graph.storage(graph[between].storage).cls = StorageClass::buffer;
  graph.outputs = {pool(between).front()};
  expect_pooling_apart();
}

/// What the rules of the tests below have in common.
std::optional<Attributes> no_attributes(const std::vector<OpView>&) { return Attributes{}; }

TEST(FuseTable, KeepsThePlacesOfOptionalOperands) {
  OperatorTable table;
  table.add({.name = "lin",
             .operands = {{"x"}, {"w"}, {.name = "bias", .optional = true}},
             .results = {"y"},
             .infer = like_first});
  table.add(
      {.name = "prelu", .operands = {{"x"}, {"slope"}}, .results = {"y"}, .infer = like_first});
  table.add({.name = "lin_prelu",
             .operands = {{"x"}, {"w"}, {.name = "bias", .optional = true}, {"slope"}},
             .results = {"y"},
             .infer = like_first,
             .does = ChainOf{{"lin", "prelu"}, no_attributes}});
  Graph graph;
  Builder builder(graph, table);
  const auto declare = [&](const char* name) {
    return builder.declare(name, DType::float32, {3}, StorageClass::buffer);
  };
  const ValueId x = declare("x"), w = declare("w"), slope = declare("slope");
  graph.outputs = {builder.add1("prelu", {builder.add1("lin", {x, w}), slope})};
  EXPECT_EQ(fuse(graph, table), 1);
  const Op& op = graph[graph[Graph::body].ops.front()];
  ASSERT_EQ(op.operands.size(), 4u);
  EXPECT_FALSE(op.operands[2]);
  EXPECT_EQ(graph[op.operands[3]].name, "slope");
}

/// What else the first op makes has to stay.
TEST(FuseTable, LeavesChainsThatMakeMore) {
  OperatorTable table;
  const std::vector<OperandSchema> x_and_running{{"x"},
                                                 {.name = "running", .renews = Renews::state}};
  const auto both = [](const OpView& op) {
    const ResultType type{op.operand(0).type, op.operand(0).shape};
    return std::vector{type, type};
  };
  table.add(
      {.name = "norm", .operands = x_and_running, .results = {"y", "running"}, .infer = both});
  table.add({.name = "relu", .operands = {{"x"}}, .results = {"y"}, .infer = like_first});
  table.add({.name = "store", .operands = {{"x"}}, .infer = [](const OpView&) {
               return std::vector<ResultType>{};
             }});
  table.add({.name = "norm_relu",
             .operands = x_and_running,
             .results = {"y", "running"},
             .infer = both,
             .does = ChainOf{{"norm", "relu"}, no_attributes}});
  table.add({.name = "relu_store",
             .operands = {{"x"}},
             .infer = [](const OpView&) { return std::vector<ResultType>{}; },
             .does = ChainOf{{"relu", "store"}, no_attributes}});
  Graph graph;
  Builder builder(graph, table);
  const ValueId x = builder.declare("x", DType::float32, {3}, StorageClass::input),
                running = builder.declare("running", DType::float32, {3}, StorageClass::buffer);
  const std::vector<ValueId> made = builder.add("norm", {x, running});
  const ValueId normed = made[0], seen = builder.add1("relu", {made[1]});
  graph.outputs = {seen, builder.add1("relu", {normed})};
  builder.add("store", {builder.add1("relu", {x})});  // ends in an op without a result
  EXPECT_EQ(fuse(graph, table), 0);
}

TEST(FuseTable, NamesAChainOfUnknownOperators) {
  OperatorTable table;
  table.add({.name = "f",
             .operands = {{"x"}},
             .results = {"y"},
             .infer = like_first,
             .does = ChainOf{{"f", "rleu"}, no_attributes}});
  Graph graph;
  EXPECT_EQ(error_of([&] { fuse(graph, table); }),
            "operator 'f' fused from a chain with 'rleu'; expected a chain of registered "
            "operators");
}

/// Two rules for one start: the longer chain wins where it is there, the shorter one elsewhere.
TEST(FuseTable, PrefersTheLongestChain) {
  OperatorTable table;
  const auto always = [](const std::vector<OpView>&) {
    return std::optional<Attributes>(Attributes{});
  };
  table.add({.name = "a", .operands = {{"x"}}, .results = {"y"}, .infer = like_first});
  table.add({.name = "ab",
             .operands = {{"x"}},
             .results = {"y"},
             .infer = like_first,
             .does = ChainOf{{"a", "b"}, always}});
  table.add({.name = "aba",
             .operands = {{"x"}},
             .results = {"y"},
             .infer = like_first,
             .does = ChainOf{{"a", "b", "a"}, always}});
  table.add({.name = "b", .operands = {{"x"}}, .results = {"y"}, .infer = like_first});
  Graph graph;
  Builder builder(graph, table);
  ValueId value = builder.declare("x", DType::float32, {3}, StorageClass::input);
  for (const char* name : {"a", "b", "a", "b", "b", "a", "b"}) value = builder.add1(name, {value});
  graph.outputs = {value};
  EXPECT_EQ(fuse(graph, table), 2);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"aba", "b", "b", "ab"}));
}

TEST(FuseTable, RefusesARuleThatIsNone) {
  OperatorTable table;
  const auto infer = [](const OpView&) { return std::vector<ResultType>{}; };
  const auto refusal = [&](ChainOf chain) {
    return error_of([&] { table.add({.name = "f", .infer = infer, .does = std::move(chain)}); });
  };
  EXPECT_EQ(refusal({{"a"}, [](const auto&) { return std::optional<Attributes>(); }}),
            "operator 'f' fused from a chain of 1; expected at least two operators and an "
            "`attributes` function");
  EXPECT_EQ(refusal({{"a", "b"}, {}}),
            "operator 'f' fused from a chain of 2 without a rule for its attributes; expected at "
            "least two operators and an `attributes` function");
}

struct FuseDense : ::testing::Test {
  Graph graph;
  Builder builder{graph, operators()};

  ValueId declare(const std::string& name, Shape shape) {
    return builder.declare(name, DType::float32, std::move(shape), StorageClass::buffer);
  }
  ValueId product() { return builder.add1("matmul", {declare("x", {3, 5}), declare("w", {5, 4})}); }
  ValueId masked() {
    builder.context.phase = Phase::backward;
    const ValueId dx =
        builder.add1("dense_grad_input", {declare("g", {3, 4}), declare("w", {5, 4})});
    return builder.add1("relu_grad", {dx, declare("y", {3, 5})});
  }
};

TEST_F(FuseDense, ReplacesChainsWithWhatWasFused) {
  const ValueId sum = builder.add1("add", {product(), declare("b", {1, 4})});
  graph.outputs = {builder.add1("relu", {sum})};
  EXPECT_EQ(fuse(graph, operators()), 2);
  EXPECT_EQ(op_names(graph), std::vector<std::string>{"dense_relu"});
  EXPECT_EQ(graph[graph[Graph::body].ops.front()].operands,
            (std::vector{graph.find("x"), graph.find("w"), graph.find("b")}));
  EXPECT_EQ(fuse(graph, operators()), 0);
}

TEST_F(FuseDense, LeavesASumThatOthersRead) {
  const ValueId sum = builder.add1("add", {product(), declare("b", {1, 4})});
  graph.outputs = {builder.add1("relu", {sum}), sum};
  EXPECT_EQ(fuse(graph, operators()), 1);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"dense", "relu"}));
}

TEST_F(FuseDense, MasksTheGradientWhereItIsMade) {
  graph.outputs = {masked()};
  EXPECT_EQ(fuse(graph, operators()), 1);
  EXPECT_EQ(op_names(graph), std::vector<std::string>{"dense_grad_input_relu"});
  EXPECT_EQ(graph[graph[Graph::body].ops.front()].operands,
            (std::vector{graph.find("g"), graph.find("w"), graph.find("y")}));
}

TEST_F(FuseDense, StandsBeforeAnUpdateOfWhatItReads) {
  builder.context.phase = Phase::backward;
  const ValueId w = builder.declare("w", DType::float32, {5, 4}, StorageClass::parameter);
  const ValueId y = declare("y", {3, 5});
  const ValueId dx = builder.add1("dense_grad_input", {declare("g", {3, 4}), w});
  builder.add("accumulate", {graph.find("g"), declare("more", {3, 4})});
  graph.outputs = {builder.add1("relu_grad", {dx, y})};
  EXPECT_EQ(fuse(graph, operators()), 1);
  EXPECT_EQ(op_names(graph), (std::vector<std::string>{"dense_grad_input_relu", "accumulate"}));
}

TEST_F(FuseDense, LeavesAChainThatHasNoPlace) {
  builder.context.phase = Phase::backward;
  const ValueId dx = builder.add1("dense_grad_input", {declare("g", {3, 4}), declare("w", {5, 4})});
  builder.add("accumulate", {graph.find("g"), declare("more", {3, 4})});
  // Made behind the change.
  const ValueId y = builder.add1("relu", {declare("z", {3, 5})});
  graph.outputs = {builder.add1("relu_grad", {dx, y}), y};
  EXPECT_EQ(fuse(graph, operators()), 0);
}

TEST_F(FuseDense, LeavesAGradientThatOthersRead) {
  const ValueId dx = masked();
  graph.outputs = {dx, graph[graph[dx].producer].operands[0]};
  EXPECT_EQ(fuse(graph, operators()), 0);
}

}  // namespace
}  // namespace arenite::graph
