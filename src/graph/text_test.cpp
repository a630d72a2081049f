#include <arenite/graph/text.hpp>
#include <arenite/graph/verify.hpp>

#include <gtest/gtest.h>

#include "src/base/testing.hpp"
#include "src/graph/random_graph.hpp"

namespace arenite::graph {
namespace {

using testing::table;

TEST(Text, PrintsWhatItReads) {
  const std::string script = R"($1 = InputTensor(image, float32, [8, 4, 4, 2]);
$2 = ParameterTensor(weight, float32, [8, 4, 4, 2]);
$3 = StateTensor("a name", float32, [8, 4, 4, 2]);
$4 @halo(1) = add($1, $2) @lane(0) @kernel("xsmm") @where("conv1");
$5, $6, $7 @workspace(4096) = pool($4, kernel=[2, 2], mode="max");
$8 = reshape($5, shape=[64]);
$9 = relu($8);
$10 @in($9) = relu($9);
$11 = scale($10, _, $6, by=0.1);
$12 @name("g") @class(activation) = relu($4) @backward;
$13, $14 = sgd($2, $12, $3, lr=0.5) @update;
result = $11, $1;
)";
  const Graph graph = parse(script, table());
  EXPECT_EQ(print(graph), script);
}

TEST(Text, IsFreeInItsForm) {
  const Graph graph = parse(
      "$7=InputTensor(x,float32,[2]);#a comment; $1 = nonsense\n\n $3 = \trelu ( $7 )\r\n;"
      "$5 = ConstantTensor(layers.0/w:1, float32, []);"
      "$9 = BufferTensor(int64, [1]); $10 = BufferTensor(cache, float32, [1]);"
      "$12 = slice($7, 0, end=1); $13 = slice($7, 1, 2); $99 = \"relu\"($7); result=$3;",
      table());
  EXPECT_EQ(print(graph), R"($1 = InputTensor(x, float32, [2]);
$2 = relu($1);
$3 = ConstantTensor(layers.0/w:1, float32, []);
$4 = BufferTensor(buffer_9, int64, [1]);
$5 = BufferTensor(cache, float32, [1]);
$6 = slice($1, begin=0, end=1);
$7 = slice($1, begin=1, end=2);
$8 = relu($1);
result = $2;
)");
}

TEST(Text, RoundTripsRandomGraphs) {
  int named = 0;
  for (unsigned seed = 0; seed < arenite::testing::fewer_where_slow(2000U); ++seed) {
    const Graph graph = testing::RandomGraph(seed).make();
    const std::string once = print(graph);
    Graph back;
    ASSERT_NO_THROW(back = parse(once, table())) << "seed " << seed << "\n" << once;
    std::string why;
    ASSERT_TRUE(equal(graph, back, &why)) << "seed " << seed << ": " << why << "\n" << once;
    ASSERT_EQ(print(back), once) << "seed " << seed;
    for (std::size_t i = 0; i < back.op_count(); ++i)
      named += back[OpId(i)].attributes.size_names().empty() ? 0 : 1;
  }
  EXPECT_GT(named, arenite::testing::fewer_where_slow(100));
}

TEST(Text, ReadsDeepChains) {
  std::string script = "$0 = InputTensor(x, float32, [2]);\n";
  constexpr int depth = 10000;
  for (int i = 1; i <= depth; ++i) {
    script += "$" + std::to_string(i) + (i > 1 ? " @in($" + std::to_string(i - 1) + ")" : "") +
              " = relu($" + std::to_string(i - 1) + ");\n";
  }
  script += "result = $" + std::to_string(depth) + ";\n";
  const Graph graph = parse(script, table());
  EXPECT_EQ(graph.op_count(), std::size_t{depth});
  EXPECT_TRUE(equal(graph, parse(print(graph), table())));
}

TEST(Equal, NamesTheDifference) {
  const auto script = [](const std::string& op) {
    return parse("$1 = InputTensor(x, float32, [2]); $2 = relu($1); $3 " + op + "; result = $3;",
                 table());
  };
  const Graph plain = script("= relu($2)");
  const auto why = [&](const std::string& op) {
    std::string text;
    EXPECT_FALSE(equal(plain, script(op), &text));
    return text;
  };
  EXPECT_EQ(why("= add($2, $2)"), "an op: relu #1 against add #1");
  EXPECT_EQ(why("= relu($1)"), "operands of relu #1: value 'relu' against value 'x'");
  EXPECT_EQ(why("@in($2) = relu($2)"),
            "the root of value 'relu': one sharing of bytes against another");
  EXPECT_EQ(why("= relu($2) @lane(1)"), "relu #1: lane -1 against lane 1");
  EXPECT_EQ(why("= relu($2) @kernel(plain)"), "relu #1: kernel '' against kernel 'plain'");
  EXPECT_EQ(why("@bytes(64) = relu($2)"), "storage of value 'relu': 8 bytes against 64 bytes");
  EXPECT_EQ(why("@class(output) = relu($2)"), "storage of value 'relu': activation against output");
}

TEST(Equal, LooksAtNumbersBitByBit) {
  const auto scale = [](double by) {
    Graph graph;
    Builder builder(graph, table());
    builder.add("scale", {builder.declare("x", DType::float32, {1}, StorageClass::input)},
                {{"by", by}});
    return graph;
  };
  EXPECT_FALSE(equal(scale(0.0), scale(-0.0)));
  EXPECT_TRUE(equal(scale(NAN), scale(NAN)));
}

}  // namespace
}  // namespace arenite::graph
