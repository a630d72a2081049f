// What passes say of their work.
#include <arenite/graph/passes.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

#include <functional>

namespace arenite::graph {
namespace {

using List = std::vector<std::string>;

struct PassRemarks : ::testing::Test {
  using Pass = std::function<void(Graph&, Remarks*)>;

  Remarks remarks;

  /// Also that the graph becomes the same without remarks.
  void run(const std::string& script, const Pass& pass) {
    const Graph graph = parse(script, operators());
    Graph told = graph, untold = graph;
    pass(told, &remarks);
    pass(untold, nullptr);
    EXPECT_TRUE(equal(told, untold));
  }
  static List list(const std::vector<Remarks::Remark>& remarks) {
    List all;
    for (const auto& [what, why] : remarks) all.push_back(what + ": " + why);
    return all;
  }
  List done() const { return list(remarks.done); }
  List left() const { return list(remarks.left); }

  void fused(const std::string& rest) {
    run(R"($1 = InputTensor(c, int32, [1]); $2 = InputTensor(x, float32, [4, 4]);
           $3 = BufferTensor(w, float32, [4, 4]); $4 = ConstantTensor(b, float32, [4]);)" +
            rest,
        [](Graph& graph, Remarks* to) { fuse(graph, operators(), to); });
  }
};

TEST_F(PassRemarks, OfChainsInTheOrderOfTheProgram) {
  run(R"($1 = InputTensor(x, float32, [2, 8, 8, 3]);
         $2 = ConstantTensor(w, float32, [3, 3, 3, 3]);
         $3 = conv2d($1, $2, padding=[1, 1]) @where("conv1"); $4 = relu($3) @where("relu1");
         $5, $6 = max_pool2d($4, kernel=[3, 3], stride=[1, 1]) @where("pool1");
         $7 = conv2d($1, $2) @where("conv2"); $8 = relu($7) @where("relu2");
         $9, $10 = max_pool2d($8) @where("pool2");
         result = $5, $9;)",
      [](Graph& graph, Remarks* to) { fuse(graph, operators(), to); });
  EXPECT_EQ(done(), (List{"conv2d 'conv1', relu 'relu1': conv2d_relu",
                          "conv2d 'conv2', relu 'relu2', max_pool2d 'pool2': "
                          "conv2d_relu_max_pool2d"}));
  EXPECT_EQ(left(), List{"conv2d 'conv1', relu 'relu1', max_pool2d 'pool1': "
                         "conv2d_relu_max_pool2d takes no such shapes or attributes"});
}

TEST_F(PassRemarks, OfChainsOfWhatWasFused) {
  fused(R"($8 = ConstantTensor(row, float32, [1, 4]); $5 = matmul($2, $3) @where("m");
           $6 = add($5, $8) @where("a"); $7 = relu($6) @where("r");
           result = $7;)");
  EXPECT_EQ(done(), (List{"matmul 'm', add 'a': dense", "dense 'm', relu 'r': dense_relu"}));
  EXPECT_EQ(left(), List{});
}

TEST_F(PassRemarks, OfChainsThatStay) {
  fused(R"($5 = dense($2, $3) @where("d1"); $6 = relu($5) @where("r1");
           $7 = dense($2, $3) @where("d2"); $8 = relu($7) @where("r2");
           $9 = add($7, $8) @where("x");
           $10 = dense($2, $3) @where("d3"); accumulate($3, $2) @where("w");
           $11 = relu($2); $12 = relu($10) @where("r3") @evaluate;
           $13 = if($1) @where("i") { $14 = dense($2, $3) @where("d4"); $15 = relu($14) @where("r4");
                 yield $14; } else { yield $2; }
           $16 = dense($13, $3) @where("d5"); $17 = relu($16) @where("r5");
           if($1) @where("j") { $18 = relu($16); yield; } else { yield; }
           result = $5, $6, $8, $9, $11, $12, $17;)");
  EXPECT_EQ(done(), List{});
  EXPECT_EQ(left(),
            (List{"dense 'd1', relu 'r1': the result of dense 'd1' is an output",
                  "dense 'd2', relu 'r2': the result of dense 'd2' is read by add 'x' too",
                  "dense 'd3', relu 'r3': relu 'r3' is of another phase or lane",
                  "dense 'd4', relu 'r4': the result of dense 'd4' is what its block yields",
                  "dense 'd5', relu 'r5': the result of dense 'd5' is read in a block of if 'j'"}));
}

TEST_F(PassRemarks, OfChainsWithoutAPlace) {
  fused(R"($5 = dense_grad_input($2, $3) @where("g"); accumulate($3, $2) @where("w");
           $6 = relu($2) @where("late"); $7 = relu_grad($5, $6) @where("m");
           result = $7;)");
  EXPECT_EQ(left(), List{"dense_grad_input 'g', relu_grad 'm': accumulate 'w' updates what is read "
                         "in between"});
}

/// Two lanes' products by one weight, and its gradient and update.
std::string lanes(const std::string& before_the_update, const std::string& results) {
  return R"(
  $1 = ParameterTensor(w, float32, [64, 8]); $2 = BufferTensor(rate, float32, [1]);
  $3 = InputTensor(x0, float32, [2, 64]); $4 = InputTensor(x1, float32, [2, 64]);
  $5 = InputTensor(g0, float32, [2, 8]); $6 = InputTensor(g1, float32, [2, 8]);
  $7 = dense($3, $1) @lane(0) @where("fc"); $8 = dense($4, $1) @lane(1) @where("fc");
  $9 = dense_grad_weight($3, $5) @backward @lane(0) @where("fc");
  $10 = dense_grad_weight($4, $6) @backward @lane(1) @where("fc");
  $11 = sum($9, $10) @backward @where("w");)" +
         before_the_update + R"(sgd($1, $11, $2) @update @where("w"); result = )" + results + ";";
}

TEST_F(PassRemarks, OfSums) {
  const Pass pass = [](Graph& graph, Remarks* to) { merge_sums(graph, operators(), {}, true, to); };
  run(lanes("", "$7, $8"), pass);
  EXPECT_EQ(done(), List{"sum 'w' of 2 results of dense_grad_weight: dense_grad_weight"});
  run(lanes("", "$10"), pass);
  EXPECT_EQ(left(), List{"sum 'w' of 2 results of dense_grad_weight: the result of "
                         "dense_grad_weight 'fc' (lane 1) is an output"});
}

TEST_F(PassRemarks, OfWeightsThatLanesShare) {
  double gigabytes = 100;
  const Pass pass = [&](Graph& graph, Remarks* to) {
    TargetProfile target;
    target.handover_gigabytes = gigabytes;
    split_features(graph, operators(), target, to);
  };
  run(lanes("", "$7, $8"), pass);
  EXPECT_EQ(left(), List{"'w': the lanes' weight is of 512 elements: handing it over costs less "
                         "than two meetings"});
  gigabytes = 1e-3;
  run(lanes("", "$7, $8"), pass);
  EXPECT_EQ(left().back(), "'w': the lanes' 4 samples cost more to hand over than the weight");
  run(lanes("$12 = relu($1) @backward @where(\"r\");", "$7, $8, $12"), pass);
  EXPECT_EQ(left().back(), "'w': relu 'r' takes all of it");
  EXPECT_EQ(done(), List{});
}

TEST_F(PassRemarks, OfGradientsInParts) {
  double microseconds = 1e-3;
  const Pass pass = [&](Graph& graph, Remarks* to) {
    TargetProfile target;
    target.task_microseconds = microseconds;
    merge_sums(graph, operators());
    split_rows(graph, operators(), target, to);
  };
  run(lanes("", "$7, $8"), pass);
  EXPECT_EQ(done(), List{"dense_grad_weight 'fc', sgd 'w': 4 parts"});
  microseconds = 1e6;
  run(lanes("", "$7, $8"), pass);
  EXPECT_EQ(left(), List{"dense_grad_weight 'fc', sgd 'w': parts would be smaller than tasks"});
  run(lanes("", "$11"), pass);
  EXPECT_EQ(left().back(),
            "dense_grad_weight 'fc', sgd 'w': the result of dense_grad_weight 'fc' is an output");
}

TEST_F(PassRemarks, OfUpdates) {
  const Pass pass = [](Graph& graph, Remarks* to) {
    merge_sums(graph, operators());
    fuse_updates(graph, operators(), to);
  };
  run(lanes("", "$7, $8"), pass);
  EXPECT_EQ(done(), List{"dense_grad_weight 'fc', sgd 'w': dense_grad_weight_sgd"});
  run(lanes("", "$11"), pass);
  EXPECT_EQ(left(), List{"dense_grad_weight 'fc', sgd 'w': the result of dense_grad_weight 'fc' is "
                         "an output"});
}

TEST_F(PassRemarks, OfGroupsOfUpdates) {
  const Pass pass = [](Graph& graph, Remarks* to) { group_updates(graph, operators(), to); };
  run(R"($1 = BufferTensor(rate, float32, [1]);
         $2 = ParameterTensor(a, float32, [4]); $3 = InputTensor(ga, float32, [4]);
         $4 = ParameterTensor(big, float32, [300, 300]); $5 = InputTensor(gb, float32, [300, 300]);
         $6 = ParameterTensor(c, float32, [4]); $7 = InputTensor(gc, float32, [4]);
         $8 = ParameterTensor(d, float32, [4]); $9 = InputTensor(gd, float32, [4]);
         sgd($2, $3, $1) @update @where("a"); sgd($4, $5, $1) @update @where("big");
         sgd($6, $7, $1) @update @where("c");
         sgd($8, $9, $1, weight_decay=0.5) @update @where("d"); $10 = relu($3); result = $10;)",
      pass);
  EXPECT_EQ(done(), List{"sgd 'a', sgd 'c': multi_sgd"});
  EXPECT_EQ(left(), (List{"sgd 'big': 90000 elements keep a GPU busy, and their gradient is not to "
                          "live longer",
                          "sgd 'd': no other update joins it"}));
}

TEST_F(PassRemarks, OfBuffersAndBytes) {
  run(R"($1 = BufferTensor(b, float32, [4, 4]); $2 = InputTensor(x, float32, [1, 4]);
         $3 = InputTensor(at, int64, [1]);
         $4 = replace_slice($1, $2, $3) @where("rows"); result = $1;)",
      [](Graph& graph, Remarks* to) { keep_state(graph, operators(), to); });
  EXPECT_EQ(left(),
            List{"replace_slice 'rows', in the bytes of 'b': the old version is an output"});
  run(R"($1 = InputTensor(x, float32, [4, 4]); $2 = matmul($1, $1) @where("m");
         $3 = relu($2) @where("a"); $4 = relu($2) @where("b"); $5 = matmul($3, $4);
         result = $5;)",
      [](Graph& graph, Remarks* to) { in_place(graph, to); });
  EXPECT_EQ(done(), List{"relu 'b': in the bytes of the result of matmul 'm'"});
  EXPECT_EQ(left().back(), "relu 'a': relu 'b' needs the result of matmul 'm' later");
}

}  // namespace
}  // namespace arenite::graph
