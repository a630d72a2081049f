#include <arenite/graph/passes.hpp>
#include <arenite/graph/regions.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include "src/graph/equal.hpp"

namespace arenite::graph {
namespace {

using List = std::vector<std::string>;

struct FuseFormulas : ::testing::Test {
  Graph graph;
  Remarks remarks;
  int count = 0;

  /// Also that it becomes the same without remarks, and that nothing is left to do.
  void run(const std::string& script) {
    graph = parse(R"($1 = InputTensor(x, float32, [64, 96]); $2 = InputTensor(y, float32, [64, 96]);
                     $3 = InputTensor(row, float32, [96]); $4 = BufferTensor(s, float32, [64, 96]);)" +
                      script,
                  operators());
    remarks = {};
    Graph untold = graph;
    count = fuse_formulas(graph, operators(), &remarks);
    fuse_formulas(untold, operators());
    EXPECT_TRUE(equal(graph, untold));
    EXPECT_EQ(fuse_formulas(untold, operators()), 0);
  }

  /// "map x y { $1 + $2 }": operands by name, or "#" and which op makes them.
  List ops() const {
    const std::vector<OpId> all = nested_ops(graph);
    List list;
    for (OpId id : all) {
      const Op& op = graph[id];
      std::string text(op.name());
      for (ValueId operand : op.operands) {
        const Value& value = graph[operand];
        const auto place = std::ranges::find(all, value.producer) - all.begin();
        text += " " + (value.producer ? "#" + std::to_string(place) : value.name);
      }
      if (op.attributes.find("axes") != nullptr)
        text += " " + to_string(*op.attributes.find("axes"));
      if (op.attributes.find("expression") != nullptr)
        text += " { " + op.attributes.text("expression") + " }";
      list.push_back(text);
    }
    return list;
  }

  void expect_left(const std::string& why) const {
    for (const auto& remark : remarks.left) {
      if (remark.why.find(why) != std::string::npos) return;
    }
    std::string all;
    for (const auto& remark : remarks.left) all += remark.what + ": " + remark.why + "\n";
    ADD_FAILURE() << "no '" << why << "' among\n" << all;
  }
};

TEST_F(FuseFormulas, OfOneAnother) {
  run("$5 = add($1, $2); $6 = relu($5); $7 = mul($6, $3); result = $7;");
  EXPECT_EQ(count, 2);
  EXPECT_EQ(ops(), (List{"map x y row { a = $1 + $2; yield $3 * select(a <= 0, 0, a) }"}));
  ASSERT_EQ(remarks.done.size(), 1u);
  EXPECT_EQ(remarks.done[0].what, "add #0, relu #1, mul #2");
  EXPECT_EQ(remarks.done[0].why, "map");
}

TEST_F(FuseFormulas, OneOperandTwice) {
  run("$5 = add($1, $3); $6 = mul($5, $5); $7 = add($6, $1); result = $7;");
  EXPECT_EQ(ops().size(), 1u);
}

TEST_F(FuseFormulas, WhatOthersReadIsAResultToo) {
  run("$5 = add($1, $2); $6 = relu($5); $7 = silu($5); result = $6, $7;");
  EXPECT_EQ(ops(), (List{"map x y { a = $1 + $2; yield sigmoid(a) * a, select(a <= 0, 0, a) }"}));
  run("$5 = add($1, $2); $6 = rms_norm($5, $3); $7 = matmul($6, $6, transpose_b=1); "
      "$8 = matmul($7, $5); result = $8;");
  EXPECT_EQ(ops().front(),
            "reduce x y row [1] { a = $1 + $2; yield a * rsqrt(sum(a * a) / "
            "float32(count()) + 1e-05) * $3, a }");
  run("$5 = add($1, $2); $6 = relu($5); result = $5, $6;");
  EXPECT_EQ(ops(), (List{"map x y { a = $1 + $2; yield select(a <= 0, 0, a), a }"}));
}

TEST_F(FuseFormulas, WhatOthersReadBeforeStays) {
  run("$5 = add($1, $2); $6 = matmul($5, $5, transpose_b=1); $7 = relu($5); result = $6, $7;");
  EXPECT_EQ(count, 0);
  expect_left("the result of add #0 is read by matmul #1 too");
  run("$5 = reduce($1, axes=[1], keep=1) { max($1) }; $6 = map($1, $5) { $1 - $2 }; "
      "result = $5, $6;");
  EXPECT_EQ(count, 0);
  expect_left("the result of reduce #0 is an output");
}

TEST_F(FuseFormulas, WhatIsRepeatedIsComputedOnce) {
  run("$5 = silu($3); $6 = mul($1, $5); result = $6;");
  EXPECT_EQ(count, 0);
  expect_left("the result of silu #0 is repeated, or of other groups");
}

TEST_F(FuseFormulas, IntoGroups) {
  run("$5 = mul($1, $1); $6 = reduce($5, axes=[1]) { sum($1) }; result = $6;");
  EXPECT_EQ(ops(), (List{"reduce x [1] { yield sum($1 * $1) }"}));
  run("$5 = reduce($1, axes=[-1]) { e = exp($1 - max($1)); yield e / sum(e); }; $6 = mul($5, $3); "
      "result = $6;");
  EXPECT_EQ(ops(), (List{"reduce x row [1] { a = exp($1 - max($1)); yield a / sum(a) * $2 }"}));
}

TEST_F(FuseFormulas, AcrossOneSweepAndTheNext) {
  run(R"($5 = reduce($1, axes=[1], keep=1) { mean($1) };
         $6 = map($1, $5) { $1 - $2 };
         $7 = reduce($6, axes=[1], keep=1) { mean($1 * $1) };
         $8 = map($6, $7, $3) { $1 * rsqrt($2 + 1e-5) * $3 };
         result = $8;)");
  EXPECT_EQ(count, 3);
  EXPECT_EQ(ops(), (List{"reduce x row [1] { a = float32(count()); b = $1 - sum($1) / a; yield "
                         "rsqrt(sum(b * b) / a + 1e-05) * b * $2 }"}));
}

TEST_F(FuseFormulas, OfOneForAGroupAlone) {
  run(R"($5 = reduce($1, axes=[1], keep=1) { max($1) }; $6 = silu($5);
         $7 = reduce($1, axes=[1], keep=1) { max($1) }; $8 = map($7, $2) { $1 * $2 };
         result = $6, $8;)");
  EXPECT_EQ(count, 0);  // nothing is read less
}

TEST_F(FuseFormulas, OtherGroups) {
  run(R"($5 = reduce($1, axes=[1]) { $1 / sum($1) };
         $6 = reduce($5, axes=[0]) { max($1) };
         result = $6;)");
  EXPECT_EQ(count, 0);
  expect_left("is of other groups");
}

/// A result that would be one for a group does not become one.
TEST_F(FuseFormulas, ResultsKeepTheirShapes) {
  run(R"($5 = reduce($1, axes=[1], keep=1) { sum($1) };
         $6, $7 = map($1, $5) { yield $1 * $2, $2 * 2 };
         result = $6;)");
  EXPECT_EQ(count, 0);
}

TEST_F(FuseFormulas, NothingIsKeptLonger) {
  run(R"($5 = relu($1); $6 = relu($2); $7 = add($5, $6);
         $8 = matmul($1, $2, transpose_b=1); $9 = matmul($8, $2); $10 = silu($7);
         $11 = matmul($8, $9); result = $10, $11;)");
  // x and y are there anyway.
  EXPECT_EQ(count, 3);
  run(R"($5 = slice($1, begin=0, end=32); $6 = slice($2, begin=0, end=32);
         $7 = matmul($5, $2, transpose_b=1); $8 = matmul($6, $2, transpose_b=1);
         $9 = add($7, $8); $10 = matmul($1, $1, transpose_b=1);
         $11 = matmul($10, $10); $12 = relu($9); result = $11, $12;)");
  EXPECT_EQ(count, 0);
  expect_left("8192 bytes would have to be kept longer");
}

/// One number is, for a product that is never made.
TEST_F(FuseFormulas, LittleMayBeKeptLonger) {
  run(R"($5 = matmul($1, $2, transpose_b=1); $6 = slice($1, begin=0, end=1);
         $7 = matmul($6, $6, transpose_b=1); $8 = mul($5, $7); $9 = matmul($5, $5);
         $10 = add($8, $9); result = $10;)");
  EXPECT_EQ(count, 1);
}

TEST_F(FuseFormulas, WhatIsNewInBetween) {
  run("$5 = relu($4); $6 = accumulate($4, $1); $7 = add($5, $1); result = $7;");
  EXPECT_EQ(count, 0);
  expect_left("updates what is read in between");
}

TEST_F(FuseFormulas, WithinBlocks) {
  run(R"($5 = relu($1); $6 = InputTensor(c, int64, [1]);
         $7 = if($6) { $8 = silu($5); $9 = silu($8); yield $9; } else { yield $5; }
         result = $7;)");
  EXPECT_EQ(count, 1);
}

/// Kernels of its own make other bits.
TEST_F(FuseFormulas, NotWithSumsOfItsOwn) {
  run("$5 = relu($1); $6 = bias_grad($5); result = $6;");
  EXPECT_EQ(count, 0);
}

TEST_F(FuseFormulas, NotWithoutEnd) {
  std::string script, last = "$1";
  for (int i = 5; i < 205; ++i) {
    const std::string next = "$" + std::to_string(i);
    script += next + " = silu(" + last + "); ";
    last = next;
  }
  run(script + "result = " + last + ";");
  EXPECT_GT(ops().size(), 3u);
  EXPECT_LT(ops().size(), 20u);
  expect_left("one op could not compute both");
}

}  // namespace
}  // namespace arenite::graph
