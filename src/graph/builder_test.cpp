#include <arenite/graph/builder.hpp>
#include <arenite/graph/verify.hpp>

#include <gtest/gtest.h>

#include "src/graph/test_operators.hpp"

namespace arenite::graph {
namespace {

using testing::error_of;

class BuilderTest : public ::testing::Test {
 protected:
  BuilderTest() : builder(graph, testing::table()) {
    x = builder.declare("x", DType::float32, {2, 4, 4, 3}, StorageClass::input);
  }

  Graph graph;
  Builder builder;
  ValueId x;
};

TEST_F(BuilderTest, InfersShapesAndTypes) {
  const auto results = builder.add("pool", {x});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(graph[results[0]].shape, Shape({2, 2, 2, 3}));
  EXPECT_EQ(graph[results[1]].type, DType::uint8);
  EXPECT_EQ(graph.root_storage(results[0]).bytes, 2 * 2 * 2 * 3 * 4);
  EXPECT_EQ(graph[results[1]].producer, OpId(0));
  verify(graph);
}

TEST_F(BuilderTest, CompletesAttributes) {
  builder.add("pool", {x}, {{"mode", std::string("mean")}});
  EXPECT_EQ(graph[OpId(0)].attributes.integers("kernel"), (std::vector<std::int64_t>{2, 2}));
  builder.add("scale", {x}, {{"by", std::int64_t{2}}});
  EXPECT_EQ(*graph[OpId(1)].attributes.find("by"),
            AttributeValue(2.0));  // an integer serves as a number
}

TEST_F(BuilderTest, KeepsWhatAttributesOfAnOpAreNamed) {
  const std::vector<std::int64_t> kernel{2, 2};
  const std::vector<std::string> names{"rows", ""};
  Attributes given{{"mode", std::string("mean")}};
  given.set("kernel", kernel, names);
  builder.add("pool", {x}, given);
  EXPECT_EQ(graph[OpId(0)].attributes.size_names("kernel"), names);
  const Attributes complete = graph[OpId(0)].attributes;
  builder.add("pool", {x}, complete);
  EXPECT_EQ(graph[OpId(1)].attributes, complete);
  EXPECT_EQ(graph[OpId(1)].attributes.size_names("kernel"), names);
}

TEST(Attributes, CopiesChangeAlone) {
  Attributes a{{"n", std::int64_t{1}}, {"list", std::vector<std::int64_t>{4, 5}}};
  a.set("list", std::vector<std::int64_t>{4, 5}, {"rows", ""});
  Attributes b = a;
  EXPECT_EQ(a, b);
  b.set("n", *b.find("list"));
  b.set("list", std::int64_t{7});
  EXPECT_EQ(a.integer("n"), 1);
  EXPECT_EQ(a.size_names("list"), (std::vector<std::string>{"rows", ""}));
  EXPECT_EQ(b.integers("n"), (std::vector<std::int64_t>{4, 5}));
  EXPECT_TRUE(b.size_names("list").empty());
  EXPECT_NE(a, b);
  const Attributes moved = std::move(b);
  b = Attributes();
  b.set("n", std::int64_t{2});
  EXPECT_EQ(moved.integer("list"), 7);
  EXPECT_EQ(b.items().size(), 1u);
}

TEST_F(BuilderTest, ViewsShareStorage) {
  const ValueId y = builder.add1("relu", {x});
  const ValueId second =
      builder.add1("slice", {y}, {{"begin", std::int64_t{1}}, {"end", std::int64_t{2}}});
  const ValueId flat =
      builder.add1("reshape", {second}, {{"shape", std::vector<std::int64_t>{48}}});
  EXPECT_EQ(graph[flat].storage, graph[y].storage);
  EXPECT_EQ(graph[flat].offset, 4 * 4 * 3 * 4);
  EXPECT_EQ(graph.storage_count(), 2u);
  verify(graph);
}

TEST_F(BuilderTest, NamesAndClassesFollowTheContext) {
  builder.context = {.phase = Phase::backward, .lane = 1, .where = "conv1"};
  const auto results = builder.add("pool", {x});
  EXPECT_EQ(graph[results[1]].name, "conv1.pool.codes@1");
  EXPECT_EQ(graph.root_storage(results[1]).cls, StorageClass::gradient);
  EXPECT_EQ(graph[OpId(0)].lane, 1);
  builder.context = {};
  EXPECT_EQ(graph.root_storage(builder.add1("relu", {x})).cls, StorageClass::activation);
}

TEST_F(BuilderTest, ChecksDeclarations) {
  EXPECT_EQ(error_of([&] { builder.declare("x", DType::float32, {}, StorageClass::input); }),
            "a second input named 'x'; expected a name of its own for each of them");
  EXPECT_EQ(error_of([&] { builder.declare("", DType::float32, {}, StorageClass::input); }),
            "a declared value with an empty name; expected at least one character");
  // Names given behind the builder's back count as well.
  graph.add_value({.name = "late", .storage = graph[x].storage});
  EXPECT_NE(error_of([&] { builder.declare("late", DType::float32, {}, StorageClass::input); }),
            "(no error)");
  graph[x].name = "renamed";
  EXPECT_EQ(error_of([&] { builder.declare("x", DType::float32, {}, StorageClass::input); }),
            "(no error)");
}

TEST_F(BuilderTest, ChecksOperands) {
  builder.context.where = "net";
  EXPECT_EQ(error_of([&] { builder.add("add", {x}); }), "add 'net': 1 operands; expected 2 (a, b)");
  EXPECT_EQ(error_of([&] {
              builder.add("scale", {x, x, x, x});
            }),
            "scale 'net': 4 operands; expected 1 to 3 (x, factor?, shift?)");
  EXPECT_EQ(error_of([&] { builder.add("relu", {ValueId(77)}); }),
            "relu 'net': operand 'x' names no value of this graph; expected a value made by this "
            "graph's builder");
  EXPECT_EQ(graph.op_count(), 0u);
  EXPECT_EQ(error_of([&] { builder.add("scale", {x, ValueId{}, x}); }), "(no error)");
  EXPECT_EQ(error_of([&] { builder.add("concat", {x, x, x, x, x}); }), "(no error)");
}

TEST_F(BuilderTest, ChecksAttributes) {
  EXPECT_EQ(error_of([&] {
              builder.add("slice", {x}, {{"begin", std::int64_t{0}}});
            }),
            "slice: no attribute 'end'; expected end=…");
  EXPECT_EQ(error_of([&] {
              builder.add("scale", {x}, {{"by", std::string("two")}});
            }),
            "scale: attribute by=two; expected a number");
  EXPECT_EQ(error_of([&] {
              builder.add("scale", {x}, {{"times", 2.0}});
            }),
            "scale: unknown attribute 'times'; expected one of by");
}

TEST_F(BuilderTest, ShapeErrorsNameTheOp) {
  const ValueId y = builder.declare("y", DType::float32, {3}, StorageClass::input);
  builder.context.where = "skip";
  EXPECT_EQ(error_of([&] {
              builder.add("add", {x, y});
            }),
            "add 'skip': [2, 4, 4, 3] and [3]; expected equal shapes");
}

TEST_F(BuilderTest, HintsAtOperatorsNearby) {
  EXPECT_EQ(
      error_of([&] { builder.add("poool", {x}); }),
      "unknown operator 'poool'; expected a registered operator (hint: did you mean 'pool'?)");
  EXPECT_EQ(error_of([&] { builder.add("transformer", {x}); }),
            "unknown operator 'transformer'; expected a registered operator (hint: "
            "register_operator adds one)");
}

TEST_F(BuilderTest, Add1WantsOneResult) {
  EXPECT_EQ(error_of([&] { builder.add1("pool", {x}); }),
            "operator 'pool' with 2 results; expected exactly one");
}

TEST(OperatorTable, RefusesIncompleteDefinitions) {
  OperatorTable table;
  EXPECT_EQ(error_of([&] { table.add({.name = "half"}); }),
            "operator 'half' without a shape rule; expected a name and an `infer` function");
  EXPECT_EQ(
      error_of([&] { table.add({.name = "many", .variadic = 1, .infer = testing::nothing}); }),
      "variadic operator 'many' without operands; expected at least one operand to repeat");
  table.add({.name = "one", .infer = testing::nothing});
  EXPECT_EQ(error_of([&] { table.add({.name = "one", .infer = testing::nothing}); }),
            "operator 'one' registered twice; expected a name of its own");
  EXPECT_EQ(table.names(), std::vector<std::string>{"one"});
}

}  // namespace
}  // namespace arenite::graph
