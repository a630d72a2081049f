// One test a rule: a graph that breaks it, and the exact words.
#include <arenite/graph/verify.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

using testing::error_of;

/// x [4, 6] (input), w (parameter), s (state), b (buffer), c (constant); relu, then add with w.
class Verify : public ::testing::Test {
 protected:
  Verify() : builder(graph, testing::table()) {
    x = builder.declare("x", DType::float32, {4, 6}, StorageClass::input);
    w = builder.declare("w", DType::float32, {4, 6}, StorageClass::parameter);
    s = builder.declare("s", DType::float32, {4, 6}, StorageClass::optimizer_state);
    b = builder.declare("b", DType::float32, {4, 6}, StorageClass::buffer);
    c = builder.declare("c", DType::float32, {4, 6}, StorageClass::constant);
    y = builder.add1("relu", {x});
    z = builder.add1("add", {y, w});
    graph.outputs = {z};
  }

  std::string flaw() const {
    return error_of([&] { verify(graph); });
  }
  Value& value(ValueId id) { return graph[id]; }
  Op& op(std::size_t i) { return graph[OpId(i)]; }
  Storage& storage(ValueId id) { return graph.storage(graph[id].storage); }
  /// An op with a region, and a value `p` that is the region's parameter.
  OpId add_block(ValueId operand) {
    inner = builder.begin_region("block", {operand});
    builder.end_region({});
    p = graph[inner].parameters[0];
    builder.add("block", {operand}, {}, {inner});
    return OpId(graph.op_count() - 1);
  }
  /// Moves the last op of the body into the region of add_block.
  void move_inside() {
    auto& ops = graph[Graph::body].ops;
    graph[inner].ops.push_back(ops.back());
    ops.pop_back();
  }

  Graph graph;
  Builder builder;
  ValueId x, w, s, b, c, y, z, p;
  RegionId inner;
};

TEST_F(Verify, AcceptsWhatTheBuilderMakes) { EXPECT_EQ(flaw(), "(no error)"); }

TEST_F(Verify, StorageIds) {
  storage(y).merged_into = StorageId(99);
  EXPECT_EQ(flaw(),
            "storage 'relu' (#5): merged into storage #99; expected one of the graph's 7 storages");
}

TEST_F(Verify, ValueStorage) {
  value(y).storage = {};
  EXPECT_EQ(flaw(), "value 'relu' (#5): no storage; expected one of the graph's 7 storages");
}

TEST_F(Verify, ValueProducerId) {
  value(y).producer = OpId(9);
  EXPECT_EQ(flaw(), "value 'relu' (#5): produced by op #9; expected one of the graph's 2 ops");
}

TEST_F(Verify, OpDefinition) {
  op(0).definition = nullptr;
  EXPECT_EQ(flaw(), "? #0: an op without a definition; expected an operator of a table");
}

TEST_F(Verify, OperandIds) {
  op(1).operands[0] = ValueId(70);
  EXPECT_EQ(flaw(), "add #1: operand #70; expected one of the graph's 7 values");
}

TEST_F(Verify, ResultIds) {
  op(1).results[0] = {};
  EXPECT_EQ(flaw(), "add #1: result without a value; expected one of the graph's 7 values");
}

TEST_F(Verify, WorkspaceIds) {
  op(1).workspace = ValueId(70);
  EXPECT_EQ(flaw(), "add #1: workspace #70; expected one of the graph's 7 values");
}

TEST_F(Verify, RegionIds) {
  op(1).regions = {RegionId(5)};
  EXPECT_EQ(flaw(), "add #1: region #5; expected one of the graph's 1 regions");
}

TEST_F(Verify, IdsInRegions) {
  graph[Graph::body].ops.push_back(OpId(9));
  EXPECT_EQ(flaw(), "region #0: an unknown op; expected ids of this graph");
  graph[Graph::body].ops.back() = OpId(1);
  graph[Graph::body].results = {ValueId(70)};
  EXPECT_EQ(flaw(), "region #0: an unknown parameter or result; expected ids of this graph");
}

TEST_F(Verify, OutputIds) {
  graph.outputs.push_back({});
  EXPECT_EQ(flaw(), "outputs: an unknown value; expected one of the graph's 7 values");
}

TEST_F(Verify, MergesEnd) {
  storage(y).merged_into = value(z).storage;
  storage(z).merged_into = value(y).storage;
  EXPECT_EQ(
      flaw(),
      "storage 'relu' (#5): merged into itself in a circle; expected merges that end at a root");
}

TEST_F(Verify, StorageSize) {
  storage(y).bytes = -1;
  EXPECT_EQ(flaw(), "storage 'relu' (#5): -1 bytes; expected at least 0");
}

TEST_F(Verify, MergesStayInTheirSpace) {
  storage(z).merged_into = value(y).storage;
  storage(y).space.index = 1;
  EXPECT_EQ(
      flaw(),
      "storage 'add' (#6): in cpu:0/host, merged into 'relu' in cpu:1/host; expected one space");
}

TEST_F(Verify, MergesFit) {
  storage(z).merged_into = value(y).storage;
  storage(z).bytes = 128;
  EXPECT_EQ(flaw(),
            "storage 'add' (#6): 128 bytes merged into the 96 of 'relu'; expected a target of at "
            "least the same size");
}

TEST_F(Verify, EachOpStandsOnce) {
  graph[Graph::body].ops.push_back(OpId(0));
  EXPECT_EQ(flaw(), "relu #0: listed 2 times in regions; expected exactly once");
  graph[Graph::body].ops = {OpId(0)};
  EXPECT_EQ(flaw(), "add #1: listed 0 times in regions; expected exactly once");
}

TEST_F(Verify, EachRegionIsHeldOnce) {
  graph.add_region();
  EXPECT_EQ(flaw(), "region #1: held by 0 ops; expected exactly one");
  op(0).regions = {Graph::body, RegionId(1)};
  EXPECT_EQ(flaw(), "region #0: held by 1 ops; expected none: it is the graph's body");
}

TEST_F(Verify, RegionsHangOnTheBody) {
  const OpId block = add_block(z);
  move_inside();
  EXPECT_EQ(graph[inner].ops.front(), block);
  EXPECT_EQ(flaw(), "region #1: not reached from the body; expected regions nested in the body");
}

TEST_F(Verify, RegionParameters) {
  graph[Graph::body].parameters = {x};
  EXPECT_EQ(flaw(),
            "value 'x' (#0): a parameter of region #0; expected parameters only of nested regions, "
            "of one region each that they name, without a producer");
}

TEST_F(Verify, TheBodyHasOutputsInstead) {
  graph[Graph::body].results = {z};
  EXPECT_EQ(flaw(), "the body: results of a region; expected outputs of the graph instead");
}

TEST_F(Verify, OneProducer) {
  op(1).results = op(0).results;
  EXPECT_EQ(flaw(), "add #1: result 'relu', also of relu #0; expected values with one producer");
}

TEST_F(Verify, ProducersAgree) {
  value(y).producer = OpId(1);
  EXPECT_EQ(flaw(),
            "relu #0: result 'relu', which says it is produced by add #1; expected this op");
  value(y).producer = {};
  EXPECT_EQ(flaw(),
            "relu #0: result 'relu', which says it is produced by nothing; expected this op");
  value(y).producer = OpId(0);
  value(x).producer = OpId(0);
  EXPECT_EQ(flaw(),
            "value 'x' (#0): said to be produced by relu #0; expected to be among its results");
}

TEST_F(Verify, WorkspaceIsBytes) {
  const StorageId bytes =
      graph.add_storage({.name = "scratch", .cls = StorageClass::workspace, .bytes = 64});
  op(0).workspace = graph.add_value({.name = "scratch",
                                     .type = DType::uint8,
                                     .shape = {64},
                                     .storage = bytes,
                                     .producer = OpId(0)});
  EXPECT_EQ(flaw(), "(no error)");
  graph.storage(bytes).cls = StorageClass::activation;
  EXPECT_EQ(flaw(),
            "relu #0: a workspace of type uint8[64], class activation; expected uint8[bytes] of "
            "class workspace");
}

TEST_F(Verify, HalosOnRank4) {
  value(y).layout.halo = 1;
  EXPECT_EQ(
      flaw(),
      "value 'relu' (#5): a halo of 1 on shape [4, 6]; expected none, or at least 1 on rank 4");
}

TEST_F(Verify, ValuesLieInTheirStorage) {
  value(y).offset = 4;
  EXPECT_EQ(flaw(),
            "value 'relu' (#5): 96 bytes at offset 4 of storage 'relu' of 96 bytes; expected "
            "values inside their "
            "storage");
  value(y).offset = std::numeric_limits<std::int64_t>::max();
  EXPECT_NE(flaw(), "(no error)");
}

TEST_F(Verify, HalosCount) {
  const ValueId image =
      builder.declare("image", DType::float32, {2, 4, 4, 1}, StorageClass::buffer);
  value(image).layout.halo = 1;
  EXPECT_EQ(flaw(),
            "value 'image' (#7): 288 bytes at offset 0 of storage 'image' of 128 bytes; expected "
            "values inside their "
            "storage");
}

TEST_F(Verify, Lanes) {
  op(0).lane = -2;
  EXPECT_EQ(flaw(), "relu #0: lane -2; expected -1 (shared) or more");
}

TEST_F(Verify, NumberOfOperands) {
  op(1).operands.pop_back();
  EXPECT_EQ(flaw(), "add #1: 1 operands; expected 2 (a, b)");
}

TEST_F(Verify, AbsentOperands) {
  op(1).operands[1] = {};
  EXPECT_EQ(flaw(), "add #1: no operand 'b'; expected a value: it is not optional");
}

TEST_F(Verify, AttributesAreComplete) {
  builder.add("scale", {z});
  op(2).attributes = {};
  EXPECT_EQ(flaw(), "scale #2: no attribute 'by'; expected a number");
}

TEST_F(Verify, AttributesHaveTheirTypes) {
  builder.add("scale", {z});
  op(2).attributes = {{"by", std::string("two")}};
  EXPECT_EQ(flaw(), "scale #2: attribute by=two; expected a number");
}

TEST_F(Verify, AttributesAreKnown) {
  op(0).attributes = {{"slope", 0.1}};
  EXPECT_EQ(flaw(),
            "relu #0: unknown attribute 'slope'; expected attributes of the operator's schema");
}

TEST_F(Verify, ShapeRulesHold) {
  value(w).shape = {24};
  EXPECT_EQ(flaw(), "add #1: [4, 6] and [24]; expected equal shapes");
}

TEST_F(Verify, NumberOfResults) {
  op(1).results.clear();
  value(z).producer = {};
  EXPECT_EQ(flaw(), "add #1: 0 results; expected 1");
}

TEST_F(Verify, ResultTypes) {
  value(z).shape = {6, 4};
  EXPECT_EQ(flaw(), "add #1: result 'add' is float32[6, 4]; expected float32[4, 6]");
}

TEST_F(Verify, ViewsLieWhereTheirOperatorSays) {
  const ValueId rows =
      builder.add1("slice", {z}, {{"begin", std::int64_t{1}}, {"end", std::int64_t{2}}});
  EXPECT_EQ(flaw(), "(no error)");
  value(rows).offset = 0;
  EXPECT_EQ(flaw(),
            "value 'slice' (#7): a view at offset 0 of storage #6; expected offset 24 of storage "
            "#6, that of its owner "
            "'add'");
}

TEST_F(Verify, ViewsLieInTheirOwner) {
  OperatorTable table;
  table.add({.name = "peek",
             .operands = {{"x"}},
             .results = {"y"},
             .infer =
                 [](const OpView&) {
                   return std::vector<ResultType>{{DType::float32, Shape{2}}};
                 },
             .views =
                 [](const OpView&) {
                   return std::vector<std::optional<ViewOf>>{ViewOf{0, 92}};
                 }});
  Builder(graph, table).add("peek", {x});
  storage(x).bytes = 128;
  EXPECT_EQ(flaw(),
            "value 'peek' (#7): 8 bytes at offset 92 of its owner 'x' of 96 bytes; expected a view "
            "inside its owner");
}

TEST_F(Verify, ViewsShareTheHalo) {
  const ValueId image =
      builder.declare("image", DType::float32, {2, 4, 4, 1}, StorageClass::buffer);
  builder.add("reshape", {image}, {{"shape", std::vector<std::int64_t>{32}}});
  value(image).layout.halo = 1;
  storage(image).bytes = 288;
  EXPECT_EQ(flaw(),
            "value 'reshape' (#8): a view of shape [32] and halo 0 over shape [2, 4, 4, 1] and "
            "halo 1; expected the "
            "same halo and planes, or no halo at all");
}

TEST_F(Verify, OneValueAStorage) {
  value(z).storage = value(y).storage;
  EXPECT_EQ(flaw(),
            "value 'add' (#6): in the storage of value 'relu' (#5); expected a storage of its own, "
            "for it is no view");
}

TEST_F(Verify, DeclaredNames) {
  const ValueId v = builder.declare("v", DType::float32, {4, 6}, StorageClass::parameter);
  value(v).name = "x";  // as an input is
  EXPECT_EQ(flaw(), "(no error)");
  value(v).name = "w";
  EXPECT_EQ(flaw(),
            "value 'w' (#7): a second parameter of this name, after #1; expected a name of its own "
            "for each of them");
  value(w).name = "a)";
  EXPECT_EQ(
      flaw(),
      "value 'a)' (#1): a declared value of this name; expected a name without ',', ')' or ';'");
}

TEST_F(Verify, DeclaredBytes) {
  graph.merge(value(b).storage, value(w).storage);
  EXPECT_EQ(flaw(),
            "value 'b' (#3): declared in the bytes of value 'w' (#1); expected bytes of their own "
            "for declared values");
}

TEST_F(Verify, DefinitionsBeforeUses) {
  std::swap(graph[Graph::body].ops[0], graph[Graph::body].ops[1]);
  EXPECT_EQ(flaw(),
            "add #1: reads value 'relu' (#5) before it is defined; expected definitions before "
            "uses, in program order");
}

TEST_F(Verify, CapturesAreVisibleAndScopesEnd) {
  const OpId block = add_block(z);
  const ValueId sum = builder.add1("add", {p, y});  // y is captured
  move_inside();
  graph[inner].results = {sum};
  EXPECT_EQ(flaw(), "(no error)");
  graph.outputs = {sum};
  EXPECT_EQ(flaw(),
            "the caller, as an output: reads value 'add' (#9) outside its scope; expected values "
            "of the same region or "
            "one around it");
  graph.outputs = {};
  graph[inner].results = {graph[block].results[0]};
  EXPECT_EQ(flaw(),
            "the end of a region of block #2: reads value 'block' (#8) before it is defined; "
            "expected definitions "
            "before uses, in program order");
}

TEST_F(Verify, PhasesReadBackwards) {
  op(0).phase = Phase::backward;
  EXPECT_EQ(flaw(),
            "add #1: reads value 'relu' (#5) of phase backward; expected values of phase forward "
            "or earlier");
}

TEST_F(Verify, NoReaderAfterAnUpdateInPlace) {
  builder.context.phase = Phase::update;
  const ValueId updated = builder.add("sgd", {w, z, s}, {{"lr", 0.1}}).front();
  builder.context.phase = Phase::backward;
  builder.add("relu", {w});
  EXPECT_EQ(flaw(), "(no error)");  // of the old version
  graph.merge(value(updated).storage, value(w).storage);
  EXPECT_EQ(
      flaw(),
      "relu #3: reads value 'w' (#1) after sgd #2 took its bytes; expected no reader after an "
      "in-place result");
}

TEST_F(Verify, OnlyUpdatesWriteParameters) {
  const ValueId updated = builder.add("sgd", {w, z}, {{"lr", 0.1}}).front();
  graph.merge(value(updated).storage, value(w).storage);
  EXPECT_EQ(flaw(),
            "sgd #2: result of phase forward writes value 'sgd' (#7), of class parameter; expected "
            "writers of phase update or init");
  op(2).phase = Phase::init;
  EXPECT_EQ(
      flaw(),
      "sgd #2: reads value 'add' (#6) of phase forward; expected values of phase init or earlier");
}

TEST_F(Verify, OnlyUpdatesWriteOptimizerState) {
  builder.context.phase = Phase::backward;
  const ValueId sum = builder.add1("accumulate", {s, z});
  graph.merge(value(sum).storage, value(s).storage);
  EXPECT_EQ(flaw(),
            "accumulate #2: result of phase backward writes value 'accumulate' (#7), of class "
            "optimizer_state; expected writers of phase update or init");
}

TEST_F(Verify, NothingWritesInputs) {
  graph.merge(value(y).storage, value(x).storage);
  EXPECT_EQ(flaw(),
            "relu #0: result writes value 'relu' (#5), of class input; expected constants and "
            "inputs that nothing "
            "writes");
}

TEST_F(Verify, NothingWritesConstants) {
  const ValueId sum = builder.add1("accumulate", {c, z});
  graph.merge(value(sum).storage, value(c).storage);
  EXPECT_EQ(flaw(),
            "accumulate #2: result writes value 'accumulate' (#7), of class constant; expected "
            "constants and inputs that nothing writes");
}

TEST_F(Verify, NoReaderAfterAnInPlaceResult) {
  graph.merge(value(z).storage, value(y).storage);
  EXPECT_EQ(flaw(), "(no error)");
  builder.add("relu", {y});
  EXPECT_EQ(flaw(),
            "relu #2: reads value 'relu' (#5) after add #1 took its bytes; expected no reader "
            "after an in-place result");
  graph[Graph::body].ops.pop_back();
  graph[Graph::body].ops.insert(graph[Graph::body].ops.begin() + 1, OpId(2));
  EXPECT_EQ(flaw(), "(no error)");  // a reader before it is fine
  graph.outputs.push_back(y);
  EXPECT_EQ(flaw(),
            "the caller, as an output: reads value 'relu' (#5) after add #1 took its bytes; "
            "expected no reader after "
            "an in-place result");
}

TEST_F(Verify, InPlaceOnlyWhereTheOperatorAllowsIt) {
  const ValueId two = builder.add1("add", {w, z});
  graph.merge(value(two).storage, value(z).storage);
  EXPECT_EQ(flaw(),
            "add #2: result 'add' takes the bytes of operand 'add'; expected an operator that "
            "allows this in place, and "
            "equal offsets");
}

TEST_F(Verify, WorkspaceTakesNoOperand) {
  const StorageId bytes =
      graph.add_storage({.name = "scratch", .cls = StorageClass::workspace, .bytes = 64});
  op(1).workspace = graph.add_value({.name = "scratch",
                                     .type = DType::uint8,
                                     .shape = {64},
                                     .storage = bytes,
                                     .producer = OpId(1)});
  graph.merge(bytes, value(y).storage);
  EXPECT_EQ(flaw(),
            "add #1: workspace 'scratch' takes the bytes of operand 'relu'; expected an operator "
            "that allows this in "
            "place, and equal offsets");
}

TEST_F(Verify, ResultsShareNoBytes) {
  const ValueId image = builder.declare("image", DType::uint8, {2, 4, 4, 1}, StorageClass::buffer);
  const auto results = builder.add("pool", {image});
  graph.merge(value(results[1]).storage, value(results[0]).storage);
  EXPECT_EQ(flaw(),
            "pool #2: results 'pool.y' and 'pool.codes' share bytes; expected results with bytes "
            "of their own");
}

TEST_F(Verify, RegionsLeaveCapturesAlone) {
  add_block(z);
  const ValueId again = builder.add1("relu", {y});  // y is captured, and its bytes taken
  move_inside();
  graph.merge(value(again).storage, value(y).storage);
  EXPECT_EQ(flaw(),
            "relu #3: takes the bytes of value 'relu' (#5) from outside its region; expected "
            "captured values that stay "
            "as they are");
}

}  // namespace
}  // namespace arenite::graph
